"""What docs/changing-the-workflow.md promises about deploys without worker versioning."""

from __future__ import annotations

import uuid
from contextlib import AbstractAsyncContextManager

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowExecutionStatus

from everturn import tool
from everturn.activities.payloads import BeginInput, Begun
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from everturn.workflows.arrows import Arrows
from tests.integration.turns.lab import WAIT, Lab, eventually, make_agent, running_lab


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


async def test_a_deploy_that_breaks_replay_fails_no_turn_and_a_rollback_lets_it_go_on(
    client: Client, scripted_server: ScriptedModelServer, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = f"deploys-{uuid.uuid4().hex[:8]}"

    def worker() -> AbstractAsyncContextManager[Lab]:
        agent = make_agent(scripted_server, tools=[pay])
        return running_lab(client, scripted_server, queue, store_url, [agent], graceful_shutdown=0.1)

    async with worker() as lab:
        turn = await lab.play("tools tool=pay args='{\"amount\": 7}' | ok")
        asked = await lab.until(turn, "tool-approval-request")
    handle = client.get_workflow_handle(workflow_id(turn.request_id))

    begin = Arrows.begin

    async def begin_after_a_timer(self: Arrows, given: BeginInput) -> Begun:
        await workflow.sleep(1)
        return await begin(self, given)

    with monkeypatch.context() as deploy:
        deploy.setattr(Arrows, "begin", begin_after_a_timer)
        async with worker() as lab:
            await handle.signal("your_turn")  # anything that lets the worker take the turn up

            async def blocked() -> bool:
                events = [event async for event in handle.fetch_history_events()]
                return any(event.HasField("workflow_task_failed_event_attributes") for event in events)

            await eventually(blocked, "the turn's task fails on the new code")
            assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
            assert (await lab.chat.inspect(turn.request_id)).turn.status == "waiting"
    async with worker() as lab:
        assert await lab.chat.approve(turn.request_id, asked.data["toolCallId"]) == "accepted"
        assert (await lab.chat.result(turn.request_id, timeout=WAIT)).ok
