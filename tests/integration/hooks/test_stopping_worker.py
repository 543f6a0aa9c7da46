"""A worker that stops while a hook runs waits no longer than it was told to, and the next worker goes on."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, hooks, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import eventually, make_agent

GRACE = 0.5


@pytest.mark.parametrize("point", ["before_turn", "before_tool_call", "on_turn_end"])
async def test_a_hook_that_hangs_is_left_to_the_next_worker(
    start_lab: StartLab, scripted_server: ScriptedModelServer, point: str
) -> None:
    inside, keys = asyncio.Event(), list[str]()

    async def hang_once(self: Any, ctx: Any) -> None:
        keys.append(ctx.idempotency_key)
        if len(keys) == 1:
            inside.set()
            await asyncio.Event().wait()

    agent = make_agent(scripted_server, tools=[add], hooks=[hooks("Slow", **{point: hang_once})])
    async with start_lab(agent, graceful_shutdown=GRACE) as lab:
        turn = await lab.play(f"tools tool=add {ADD}")
        await asyncio.wait_for(inside.wait(), 20)
        started = time.monotonic()
        await lab.workers[0].shutdown()
        assert time.monotonic() - started < 10, "the hook's own limit is 30 s"
    async with start_lab(agent) as lab:
        assert (await lab.chat.turn(turn.request_id).result(30)).status == "completed"

        async def told() -> bool:
            return bool(traces(await lab.chat.inspect(turn.request_id), point))

        await eventually(told, f"{point} ran on the second worker")
        assert [trace.outcome for trace in traces(await lab.chat.inspect(turn.request_id), point)] == ["ok"]
        assert len(lab.asked(turn)) == 2
    assert keys == [keys[0]] * 2


async def test_a_hook_that_ends_in_time_is_waited_for_by_a_worker_that_stops(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    inside, ended = asyncio.Event(), list[str]()

    async def takes_a_moment(self: Any, result: Any) -> None:
        inside.set()
        await asyncio.sleep(0.3)
        ended.append(result.request_id)

    agent = make_agent(scripted_server, hooks=[hooks("Slow", on_turn_end=takes_a_moment)])
    async with start_lab(agent, graceful_shutdown=20) as lab:
        turn = await lab.play("ok")
        await asyncio.wait_for(inside.wait(), 20)
        await lab.workers[0].shutdown()
    assert ended == [turn.request_id]
