"""A 2-tool turn as the first and as the 200th of a thread whose messages have 2 kB each."""

from __future__ import annotations

import asyncio
from typing import Final

from benchmarks.field import Field
from benchmarks.samples import Sample
from benchmarks.schedule import Budget, rotated

LONG: Final = 200
LONG_WHERE_RUN: Final = 60
"""The long thread of contenders into which a past can only be brought by running it: all 200 would take too long."""
_SCRIPT: Final = {"tools": 2, "tokens": 20, "token_bytes": 100, "message_bytes": 2_000}
_FILL_LIMIT: Final = 300.0
_PAUSE: Final = 0.2


async def measure(field: Field, budget: Budget) -> list[Sample]:
    for name, entrant in field.entrants.items():  # the past is made with the first long turn, which does not count
        await entrant.turns(earlier=_long(field, name) - 1, limit=_FILL_LIMIT, **_SCRIPT)
    samples: list[Sample] = []
    for number in budget.rounds():
        for name in rotated(list(field.entrants), number):
            for turn in (1, _long(field, name)):
                samples.append(await _one(field, name, number, turn))
                await asyncio.sleep(_PAUSE)
    return samples


def _long(field: Field, name: str) -> int:
    return LONG_WHERE_RUN if field.entrants[name].contender.run_past else LONG


async def _one(field: Field, name: str, number: int, turn: int) -> Sample:
    done = (await field.entrants[name].turns(earlier=turn - 1, **_SCRIPT))["turns"][0]
    sample: Sample = {"section": "growth", "contender": name, "round": number, "turn": turn}
    sample |= {"ms": (done["ended"] - done["began"]) * 1000, "error": done.get("error")}
    if done.get("workflow"):
        events, size = await field.history(done["workflow"])
        sample |= {"events": events, "bytes": size}
    return sample
