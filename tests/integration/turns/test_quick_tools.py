"""Tools that are known to be quick run within the workflow task; all that holds for tools holds for them."""

from __future__ import annotations

import asyncio
from typing import Any

from everturn import ToolContext, Turn, tool
from everturn.activities.pace import QUICK_CALLS, RUNS
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, eventually, make_agent

SLOW = asyncio.Event()
"""Set: the tool `moody` hangs until it is cancelled."""
EFFECTS: list[str] = []


@tool
async def moody(note: str = "") -> str:
    """Ends at once, or never."""
    EFFECTS.append(note)
    if SLOW.is_set():
        await asyncio.Event().wait()
    return "done"


@tool
async def patient(ctx: ToolContext) -> str:
    """Wants to be told of a cancel."""
    return "not cancelled" if not ctx.cancelled.is_set() else "cancelled"


async def tool_tasks(lab: Lab, turn: Turn) -> int:
    """How many activity tasks the turn's tools had."""
    scheduled = [event.activity_task_scheduled_event_attributes for event in await lab.history(turn)]
    return sum(1 for given in scheduled if given.activity_type.name == "everturn.run_tool")


async def played(lab: Lab, script: str) -> tuple[Turn, Any]:
    turn = await lab.play(script)
    return turn, await turn.result(30)


async def test_a_tool_that_was_quick_several_times_needs_no_task_of_its_own(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    SLOW.clear()
    async with start_lab(make_agent(scripted_server, tools=[moody])) as lab:
        for _ in range(RUNS):
            turn, _ = await played(lab, "tools tool=moody")
            assert await tool_tasks(lab, turn) == 1
        turn, result = await played(lab, "tools tool=moody calls=3")
        assert await tool_tasks(lab, turn) == 0
        assert (result.status, result.text) == ("completed", "done: 3 results")
        info = await lab.chat.inspect(turn.request_id)
        assert [call.state for call in info.tool_calls] == ["done"] * 3
        turn, _ = await played(lab, f"tools tool=moody calls={QUICK_CALLS + 1}")
        assert await tool_tasks(lab, turn) == QUICK_CALLS + 1


async def test_a_tool_with_a_context_keeps_its_task(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server, tools=[patient])) as lab:
        for _ in range(RUNS + 1):
            turn, _ = await played(lab, "tools tool=patient")
            assert await tool_tasks(lab, turn) == 1


async def test_a_quick_tool_that_hangs_for_once_is_cancelled_and_counts_as_slow_again(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    SLOW.clear()
    async with start_lab(make_agent(scripted_server, tools=[moody])) as lab:
        for _ in range(RUNS):
            await played(lab, "tools tool=moody")
        SLOW.set()
        before = len(EFFECTS)
        turn = await lab.play("tools tool=moody")

        async def hangs() -> bool:
            return len(EFFECTS) > before

        await eventually(hangs, "the tool runs")
        assert await lab.chat.cancel_chat(turn.request_id) == "cancelled"
        result = await turn.result(30)
        assert result.status == "aborted"
        info = await lab.chat.inspect(turn.request_id)
        assert [call.state for call in info.tool_calls] == ["interrupted"]
        SLOW.clear()
        turn, _ = await played(lab, "tools tool=moody")
        assert await tool_tasks(lab, turn) == 1


async def test_a_quick_tool_that_hangs_does_not_hold_up_a_worker_that_stops(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    SLOW.clear()
    agent = make_agent(scripted_server, tools=[moody])
    async with start_lab(agent, graceful_shutdown=0.5) as lab:
        for _ in range(RUNS):
            await played(lab, "tools tool=moody")
        SLOW.set()
        before = len(EFFECTS)
        turn = await lab.play("tools tool=moody")

        async def hangs() -> bool:
            return len(EFFECTS) > before

        await eventually(hangs, "the tool runs")
        async with asyncio.timeout(20):  # its own limit is two minutes
            await lab.workers[0].shutdown()
    SLOW.clear()
    async with start_lab(agent) as lab:
        assert (await lab.chat.turn(turn.request_id).result(30)).status == "completed"
        info = await lab.chat.inspect(turn.request_id)
        assert [call.state for call in info.tool_calls] == ["unknown"]
        assert len(EFFECTS) == before + 1
