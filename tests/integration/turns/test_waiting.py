"""Turns that wait for a person or a front end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import Client

from everturn import Allow, Ask, BadInput, ChatClient, Hooks, PendingCall, Turn, tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, Lab, make_agent

RAN: list[int] = []


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays an amount."""
    RAN.append(amount)
    return f"paid {amount}"


@tool(needs_approval=lambda given: given["amount"] > 100)
async def tip(amount: int) -> str:
    """Tips an amount."""
    return f"tipped {amount}"


@tool(client=True)
def locate(precise: bool) -> str:
    """Where the user is."""
    raise AssertionError("a client tool has no body")


async def waiting(lab: Lab, turn: Turn, count: int = 1) -> list[PendingCall]:
    async with asyncio.timeout(WAIT):
        while len(found := await lab.chat.pending(turn.thread_id)) < count:
            await asyncio.sleep(0.02)
    return found


def call(name: str, count: int = 1, **arguments: Any) -> str:
    import json

    return f"[[tools calls={count} tool={name} args='{json.dumps(arguments)}']]"


async def test_a_call_that_needs_approval_runs_once_with_the_approved_input(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    RAN.clear()
    async with start_lab(make_agent(scripted_server, tools=[pay])) as lab:
        turn = await lab.submit(lab.thread(), call("pay", amount=5))
        (pending,) = await waiting(lab, turn)
        assert (pending.kind, pending.tool_name, pending.input) == ("approval", "pay", {"amount": 5})
        assert (await turn.info()).turn.status == "waiting"
        assert RAN == []
        with pytest.raises(BadInput, match="amount"):
            await lab.chat.approve(turn.request_id, pending.tool_call_id, {"amount": "much"})
        assert await lab.chat.approve(turn.request_id, pending.tool_call_id, {"amount": 3}) == "accepted"
        result = await turn.result(WAIT)
        assert (result.status, RAN) == ("completed", [3])
        assert await lab.chat.approve(turn.request_id, pending.tool_call_id) == "already_resolved"
        (settled,) = (await turn.info()).tool_calls
        assert (settled.state, settled.input, settled.output) == ("done", {"amount": 3}, "paid 3")
        types = [chunk.type for chunk in await lab.chunks(turn)]
        assert types.index("tool-approval-request") < types.index("tool-output-available")


async def test_a_denied_call_does_not_run_and_the_model_is_told_why(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    RAN.clear()
    async with start_lab(make_agent(scripted_server, tools=[pay])) as lab:
        turn = await lab.submit(lab.thread(), call("pay", amount=77))
        (pending,) = await waiting(lab, turn)
        assert await lab.chat.deny(turn.request_id, pending.tool_call_id, "too much") == "accepted"
        result = await turn.result(WAIT)
        assert (result.status, RAN) == ("completed", [])
        prompt = lab.requests("77")[-1].body["messages"]
        assert "too much" in next(m["content"] for m in prompt if m["role"] == "tool")
        assert await lab.chat.deny(turn.request_id, pending.tool_call_id) == "already_resolved"
        assert await lab.chat.approve(turn.request_id, "no-such-call") == "not_found"


async def test_two_approvals_of_one_batch_settle_both_and_the_model_goes_on_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    RAN.clear()
    async with start_lab(make_agent(scripted_server, tools=[pay])) as lab:
        turn = await lab.submit(lab.thread(), call("pay", 2, amount=11))
        first, second = await waiting(lab, turn, 2)
        assert await lab.chat.deny(turn.request_id, first.tool_call_id) == "accepted"
        assert len(lab.requests(turn.request_id)) <= 1
        assert await lab.chat.approve(turn.request_id, second.tool_call_id) == "accepted"
        result = await turn.result(WAIT)
        assert (result.status, result.steps, RAN) == ("completed", 2, [11])
        states = [c.state for c in (await turn.info()).tool_calls]
        assert states == ["denied", "done"]


async def test_a_rule_asks_only_for_the_inputs_it_names(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[tip])) as lab:
        assert (await lab.run(lab.thread(), call("tip", amount=10))).status == "completed"
        turn = await lab.submit(lab.thread(), call("tip", amount=1000))
        (pending,) = await waiting(lab, turn)
        await lab.chat.approve(turn.request_id, pending.tool_call_id)
        assert (await turn.result(WAIT)).status == "completed"


async def test_a_hook_asks_and_silence_is_a_denial(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    class Careful(Hooks):
        def before_tool_call(self, ctx: Any) -> Any:
            return Ask("is that right?", timeout=1.0) if ctx.input["amount"] == 9 else Allow()

    async with start_lab(make_agent(scripted_server, tools=[tip], hooks=[Careful()])) as lab:
        turn = await lab.submit(lab.thread(), call("tip", amount=9))
        (pending,) = await waiting(lab, turn)
        assert pending.reason == "is that right?"
        assert (await turn.result(WAIT)).status == "completed"
        (settled,) = (await turn.info()).tool_calls
        assert settled.state == "denied"
        assert "in time" in (settled.error or "")


async def test_a_client_tool_gets_its_result_from_the_front_end(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[locate])) as lab:
        turn = await lab.submit(lab.thread(), call("locate", precise=True))
        (pending,) = await waiting(lab, turn)
        assert pending.kind == "client_tool"
        assert await lab.chat.approve(turn.request_id, pending.tool_call_id) == "not_found"
        sent = await lab.chat.submit_tool_result(turn.request_id, pending.tool_call_id, {"city": "Oslo"})
        assert sent == "accepted"
        assert (await turn.result(WAIT)).status == "completed"
        (settled,) = (await turn.info()).tool_calls
        assert (settled.state, settled.output) == ("done", {"city": "Oslo"})


async def test_a_cancel_while_waiting_denies_what_waits_and_keeps_the_thread_usable(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    RAN.clear()
    async with start_lab(make_agent(scripted_server, tools=[pay])) as lab:
        turn = await lab.submit(lab.thread(), call("pay", amount=5))
        (pending,) = await waiting(lab, turn)
        assert await turn.cancel("never mind") == "cancelled"
        result = await turn.result(WAIT)
        assert (result.status, RAN) == ("aborted", [])
        assert await lab.chat.pending(turn.thread_id) == []
        assert await lab.chat.approve(turn.request_id, pending.tool_call_id) == "already_resolved"
        assert (await lab.run(turn.thread_id, "[[say text=next]]")).text == "next"


async def test_a_caller_that_stops_waiting_for_its_answer_to_be_taken_is_cancelled(
    client: Client, task_queue: str
) -> None:
    chat = await ChatClient.connect(client, task_queue=task_queue)  # nobody works there
    turn = await chat.submit("thread", "hello", agent="agent")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await chat.approve(turn.request_id, "call")
