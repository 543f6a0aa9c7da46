"""Turns that wait for days: Temporal's clock is moved, nothing else is pretended."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio.client import Client
from temporalio.testing import TimeSkipper

from everturn import tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, make_agent
from tests.integration.turns.test_waiting import call, waiting

SENT: list[str] = []


@tool(needs_approval=True)
async def send(text: str) -> str:
    """Sends a letter."""
    SENT.append(text)
    return f"sent {text}"


async def test_a_call_approved_two_days_later_by_another_worker_runs_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer, client: Client
) -> None:
    SENT.clear()
    agent = make_agent(scripted_server, tools=[send])
    async with start_lab(agent) as lab:
        turn = await lab.submit(lab.thread(), call("send", text="hello"))
        (pending,) = await waiting(lab, turn)
    async with start_lab(agent) as lab:
        handle = client.get_workflow_handle(workflow_id(turn.request_id))
        async with asyncio.timeout(WAIT):
            assert await TimeSkipper(client).fast_forward(handle, timedelta(days=2))
        assert await lab.chat.approve(turn.request_id, pending.tool_call_id) == "accepted"
        result = await lab.chat.turn(turn.request_id).result(WAIT)
        assert (result.status, SENT) == ("completed", ["hello"])
        assert await lab.chat.approve(turn.request_id, pending.tool_call_id) == "already_resolved"
        assert len(await lab.history(turn)) < 80


async def test_a_call_that_nobody_answers_is_denied_after_seven_days(
    start_lab: StartLab, scripted_server: ScriptedModelServer, client: Client
) -> None:
    SENT.clear()
    async with start_lab(make_agent(scripted_server, tools=[send])) as lab:
        turn = await lab.submit(lab.thread(), call("send", text="anybody?"))
        await waiting(lab, turn)
        handle = client.get_workflow_handle(workflow_id(turn.request_id))
        async with asyncio.timeout(WAIT):
            await TimeSkipper(client).fast_forward(handle, timedelta(days=8))
        result = await turn.result(WAIT)
        (settled,) = (await turn.info()).tool_calls
        assert (result.status, settled.state, SENT) == ("completed", "denied", [])
