"""With a codec, nobody who reads Temporal reads what was said."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from temporalio.client import Client

from everturn.ids import workflow_id
from everturn.testing import System, assert_replays
from tests.integration.encryption.canaries import Canaries, decoded, event_types, kept, pending_failures, raw
from tests.integration.encryption.scenes import PATIENCE, SCENES, first_chunk, submit


@pytest.mark.parametrize("name", SCENES)
async def test_no_word_of_a_turn_is_readable_in_temporal(
    system: System, word: Canaries, client: Client, name: str
) -> None:
    scene = SCENES[name]
    async with asyncio.timeout(PATIENCE):
        turn = await scene.play(system, word, f"thread-{uuid.uuid4().hex[:8]}")
        run = await system.finished(turn, PATIENCE)
        found = await kept(client, workflow_id(turn.request_id), current=True)
    assert run.status == scene.status
    assert event_types(found) >= scene.events
    assert word.found_in(raw(found)) == set()
    assert word.found_in(await decoded(system.client, found)) >= scene.shown


async def test_the_failure_of_an_activity_that_will_be_retried_is_not_readable(
    system: System, word: Canaries, client: Client
) -> None:
    turn = await submit(system, "retried later: go", f"thread-{uuid.uuid4().hex[:8]}")
    await first_chunk(turn, "data-retrying")
    async with asyncio.timeout(PATIENCE):
        while not pending_failures(found := await kept(client, workflow_id(turn.request_id))):
            await asyncio.sleep(0.02)
    assert word.found_in(raw(found)) == set()
    assert "out of order" not in str(pending_failures(found))
    assert "server_error" in str(pending_failures(found))
    assert (await system.finished(turn)).status == "completed"


async def test_an_encrypted_history_replays_with_its_data_converter(system: System) -> None:
    run = await system.run_turn("structured: go", agent="clerk")
    await assert_replays(run.history, data_converter=system.client.data_converter)
