"""A worker that lives, but does not answer within its workflow task's time, loses the task.

Nothing of the turn is lost with it, doubled, or taken for cancelled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from everturn import Agent, Turn, tool
from everturn.activities.pace import QUICK_CALLS, RUNS
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.workflows.timeouts import WORKFLOW_TASK_TIMEOUT
from tests.integration.turns.lab import Lab, eventually, make_agent, running_lab
from tests.services.proxy import Proxy, open_proxy
from tests.services.temporal import TemporalService

LOST = WORKFLOW_TASK_TIMEOUT.total_seconds() + 1
RAN: Counter[str] = Counter()
HANGS: set[str] = set()
"""What does not end until OPEN."""
OPEN = asyncio.Event()


async def run(name: str) -> None:
    RAN[name] += 1
    if name in HANGS:
        await OPEN.wait()


@tool
async def note() -> str:
    """Takes something down."""
    await run("tool")
    return "noted"


class Hooked(Agent):
    """Two hooks around its tool."""

    async def before_tool_call(self, ctx: object) -> None:
        del ctx
        await run("before_tool_call")

    async def after_tool_call(self, ctx: object) -> None:
        del ctx
        await run("after_tool_call")


@asynccontextmanager
async def behind_proxy(
    temporal: TemporalService, server: ScriptedModelServer, task_queue: str, store_url: str
) -> AsyncIterator[tuple[Lab, Proxy]]:
    """A worker whose tool is known to be quick, and the network between it and Temporal."""
    HANGS.clear()
    OPEN.clear()
    async with open_proxy(temporal.address) as proxy:
        client = await Client.connect(proxy.address, namespace=temporal.namespace)
        agent = make_agent(server, tools=[note], base=Hooked)
        async with running_lab(client, server, task_queue, store_url, [agent]) as lab:
            for _ in range(RUNS):
                await (await lab.play("tools tool=note")).result(30)
            RAN.clear()
            yield lab, proxy


async def hanging(lab: Lab, where: str, calls: int = 1) -> Turn:
    """A turn that hangs in this place."""
    HANGS.add(where)
    turn = await lab.play(f"tools tool=note calls={calls}")

    async def hangs() -> bool:
        return RAN[where] == calls

    await eventually(hangs, f"{where} runs")
    return turn


async def lost_tasks(lab: Lab, turn: Turn) -> int:
    history = await lab.history(turn)
    return sum(event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT for event in history)


@pytest.mark.parametrize("where", ["before_tool_call", "tool", "after_tool_call"])
async def test_what_runs_in_a_lost_task_goes_on(
    temporal: TemporalService, scripted_server: ScriptedModelServer, task_queue: str, store_url: str, where: str
) -> None:
    async with behind_proxy(temporal, scripted_server, task_queue, store_url) as (lab, proxy):
        turn = await hanging(lab, where, QUICK_CALLS)
        proxy.swallow()
        await asyncio.sleep(LOST)
        proxy.heal()

        async def told() -> bool:
            return await lost_tasks(lab, turn) > 0

        await eventually(told, "a lost workflow task")
        await asyncio.sleep(0.5)  # so that its next try meets what still runs, too
        OPEN.set()
        assert (await turn.result(30)).status == "completed"
        assert [call.state for call in (await turn.info()).tool_calls] == ["done"] * QUICK_CALLS
        assert RAN[where] == QUICK_CALLS


async def test_another_worker_gives_a_quick_call_the_time_to_end(
    temporal: TemporalService, client: Client, scripted_server: ScriptedModelServer, task_queue: str, store_url: str
) -> None:
    async with behind_proxy(temporal, scripted_server, task_queue, store_url) as (lab, proxy):
        turn = await hanging(lab, "tool")
        proxy.swallow()
        agent = make_agent(scripted_server, tools=[note], base=Hooked)
        async with running_lab(client, scripted_server, task_queue, store_url, [agent]) as other:

            async def taken_over() -> bool:
                return RAN["before_tool_call"] > 1

            await eventually(taken_over, "another worker has the task")
            await asyncio.sleep(1)  # so that it meets the call while it runs
            OPEN.set()
            assert (await other.chat.turn(turn.request_id).result(30)).status == "completed"
            (call,) = (await other.chat.turn(turn.request_id).info()).tool_calls
            assert (call.state, RAN["tool"]) == ("done", 1)
            proxy.heal()


async def test_a_cancel_still_stops_what_runs_at_once(
    temporal: TemporalService, scripted_server: ScriptedModelServer, task_queue: str, store_url: str
) -> None:
    async with behind_proxy(temporal, scripted_server, task_queue, store_url) as (lab, _):
        turn = await hanging(lab, "tool")
        assert await lab.chat.cancel_chat(turn.request_id) == "cancelled"
        assert (await turn.result(30)).status == "aborted"
        assert [call.state for call in (await turn.info()).tool_calls] == ["interrupted"]
