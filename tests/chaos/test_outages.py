"""Workers, networks and servers that are lost in the middle of streams: every turn ends with all of its words, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.databases import Databases
from tests.chaos.outages import OUTAGES, Ground, Outage, suffer
from tests.chaos.stage import Services

TURNS = 2


@pytest.mark.timeout(240)
async def test_turns_go_on_through_every_outage(services: Services, databases: Databases, tmp_path: Path) -> None:
    """Side by side, each in a system of its own: nearly all of the time is waiting."""

    async def faults_of(number: int, outage: Outage) -> list[str]:
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            found = await suffer(outage, Ground(services, databases, folder), TURNS)
        except Exception as error:
            error.add_note(f"while {outage.name}")
            raise
        return [f"{outage.name}: {fault}" for fault in found.faults]

    found = await asyncio.gather(*(faults_of(number, outage) for number, outage in enumerate(OUTAGES)))
    assert not [fault for faults in found for fault in faults]
