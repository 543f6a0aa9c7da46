"""Turns whose workflow is gone, with nobody waiting: one look of the reconciler settles them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn import Agent, Settings, Turn, tool
from everturn.activities.recovery_payloads import (
    RECONCILE_WORKFLOW,
    SETTLE_WORKFLOW,
    ReconcileDone,
    ReconcileInput,
    SettleInput,
)
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.activities.settling import settle_id
from everturn.ids import new_request_id, workflow_id
from everturn.store.records import Ending
from everturn.turns import TERMINAL, TurnError
from everturn.worker.schedule import find_schedule, install_schedule, schedule_id
from tests.integration.store.builders import admission, text
from tests.integration.turns.lab import WAIT, Lab, eventually, make_agent, running_lab

HEARD: list[tuple[str, str, str]] = []
"""Hook point, request id, and what it saw."""


class Listener(Agent):
    """Implements the hooks of an ending."""

    async def on_chat_error(self, error: Any, ctx: Any) -> str:
        HEARD.append(("on_chat_error", ctx.request_id, ctx.stage))
        return "Something broke. Please ask again."

    async def on_chat_response(self, result: Any) -> None:
        HEARD.append(("on_chat_response", result.request_id, result.status))

    async def on_turn_end(self, result: Any) -> None:
        HEARD.append(("on_turn_end", result.request_id, f"{result.status} {result.error.type if result.error else ''}"))


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lab(
    client: Client, scripted_server: ScriptedModelServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Lab]:
    """One system for the tests of this file: they keep apart by their threads."""
    agents = [make_agent(scripted_server, tools=[pay]), make_agent(scripted_server, name="listener", base=Listener)]
    url = f"sqlite:///{tmp_path_factory.mktemp('reconciling') / 'store.db'}"
    async with running_lab(client, scripted_server, f"reconciling-{uuid.uuid4().hex[:8]}", url, agents) as running:
        yield running


async def look(lab: Lab, **given: float) -> ReconcileDone:
    """One run of the reconciler."""
    wanted = replace(ReconcileInput(grace=0), **given)  # type: ignore[arg-type]  # numbers only
    name = f"look-{uuid.uuid4().hex[:8]}"
    running = lab.client.execute_workflow(
        RECONCILE_WORKFLOW, wanted, id=name, task_queue=lab.task_queue, result_type=ReconcileDone
    )
    return await asyncio.wait_for(running, WAIT)


async def terminate(lab: Lab, turn: Turn) -> None:
    await lab.client.get_workflow_handle(workflow_id(turn.request_id)).terminate("by an operator")


async def status(lab: Lab, request_id: str) -> str:
    head = await lab.store.head(request_id)
    return head.status if head else "unknown"


async def settled(lab: Lab, request_id: str) -> None:
    async def over() -> bool:
        return await status(lab, request_id) in TERMINAL

    await eventually(over, f"turn {request_id} is settled")


async def stalled(lab: Lab, agent: str = "agent") -> Turn:
    """A turn that has said a few words and says no more."""
    turn = await lab.play("stall tokens=2", agent=agent)
    await lab.until(turn, "text-delta")
    return turn


async def listed_as_over(lab: Lab, turn: Turn) -> None:
    """Temporal's list of workflows lags behind; a turn that it shows as running is looked at in the next run."""

    async def listed() -> bool:
        query = f"WorkflowId = '{workflow_id(turn.request_id)}' AND ExecutionStatus != 'Running'"
        return [found.id async for found in lab.client.list_workflows(query)] != []

    await eventually(listed, "the list shows the workflow as over")


async def test_a_terminated_turn_is_settled_and_its_thread_goes_on(lab: Lab) -> None:
    turn = await stalled(lab)
    await terminate(lab, turn)
    await listed_as_over(lab, turn)
    assert (await look(lab)).lost >= 1
    await settled(lab, turn.request_id)
    ended = await lab.store.ended(turn.request_id)
    assert ended is not None
    assert ended.error is not None
    assert (ended.status, ended.error.type) == ("error", "lost")
    assert "ended as terminated" in ended.error.message
    assert ended.message is not None, "what was said is kept"
    chunks = await lab.chunks(turn)
    assert (chunks[-1].type, chunks[-1].data["type"]) == ("error", "lost")
    assert (await lab.run(turn.thread_id, "[[ok]] again")).ok


async def test_a_terminated_turn_that_waited_for_approval_is_settled(lab: Lab) -> None:
    turn = await lab.play("tools tool=pay args='{\"amount\": 7}'")
    await lab.until(turn, "tool-approval-request")
    await terminate(lab, turn)
    await listed_as_over(lab, turn)
    await look(lab)
    await settled(lab, turn.request_id)
    info = await lab.chat.inspect(turn.request_id)
    assert [call.state for call in info.tool_calls] == ["interrupted"]
    assert await lab.chat.pending(turn.thread_id) == []


async def test_two_turns_queued_behind_a_terminated_one_run_in_order(lab: Lab) -> None:
    first = await stalled(lab)
    others = [await lab.play("ok", first.thread_id) for _ in range(2)]
    for other in others:
        await lab.until(other, "data-queued")
    await terminate(lab, first)
    await listed_as_over(lab, first)
    await look(lab)
    results = [await other.result(WAIT) for other in others]
    assert [result.status for result in results] == ["completed", "completed"]
    starts = [(await lab.chat.inspect(other.request_id)).turn.started_at or "" for other in others]
    assert starts == sorted(starts)


async def test_a_queued_turn_that_was_terminated_lets_the_next_one_through(lab: Lab) -> None:
    first = await lab.play("text tokens=30 delay_ms=50")
    second, third = [await lab.play("ok", first.thread_id) for _ in range(2)]
    for other in (second, third):
        await lab.until(other, "data-queued")
    await terminate(lab, second)
    await listed_as_over(lab, second)
    await look(lab)
    await settled(lab, second.request_id)
    assert [await status(lab, turn.request_id) for turn in (first, third)] == ["running", "queued"]
    assert (await third.result(WAIT)).ok
    assert [m.request_id for m in await lab.chat.messages(first.thread_id)] == [
        *[first.request_id] * 2,
        *[third.request_id] * 2,
    ]


async def test_a_turn_without_a_workflow_is_settled(lab: Lab) -> None:
    """As after a store was restored beside an empty Temporal."""
    request_id = new_request_id()
    await lab.store.begin(admission(request_id, lab.thread(), submitted_at=time.time() - 100))
    await look(lab, grace=50)
    await settled(lab, request_id)
    ended = await lab.store.ended(request_id)
    assert ended is not None
    assert ended.error is not None
    assert "never started" in ended.error.message


async def test_a_turn_that_merely_runs_is_left_alone(lab: Lab) -> None:
    turn = await lab.play("tools tool=pay args='{\"amount\": 7}' | ok")
    asked = await lab.until(turn, "tool-approval-request")
    await look(lab)
    settling = lab.client.execute_workflow(
        SETTLE_WORKFLOW, SettleInput(turn.request_id), id=settle_id(turn.request_id), task_queue=lab.task_queue
    )
    assert await settling == "alive"
    assert await status(lab, turn.request_id) == "waiting"
    await lab.chat.approve(turn.request_id, asked.data["toolCallId"])
    assert (await turn.result(WAIT)).ok


async def test_a_young_turn_is_not_even_looked_at(lab: Lab) -> None:
    turn = await stalled(lab)
    await terminate(lab, turn)
    await listed_as_over(lab, turn)
    await look(lab, grace=3600)
    assert await status(lab, turn.request_id) == "running"
    await look(lab)
    await settled(lab, turn.request_id)


async def test_a_turn_that_ended_just_before_keeps_its_ending(lab: Lab) -> None:
    """The reconciler may have read the row before the turn ended, and asks Temporal after it."""
    turn = await lab.play("ok", agent="listener")
    await turn.result(WAIT)
    await lab.client.get_workflow_handle(workflow_id(turn.request_id)).result()
    heard = [what for what in HEARD if what[1] == turn.request_id]
    state = await lab.client.execute_workflow(
        SETTLE_WORKFLOW, SettleInput(turn.request_id), id=settle_id(turn.request_id), task_queue=lab.task_queue
    )
    assert state == "over"
    assert (await turn.result(WAIT)).ok
    assert [what for what in HEARD if what[1] == turn.request_id] == heard


async def test_two_reconcilers_at_once_ask_the_hooks_once(lab: Lab) -> None:
    turns = [await stalled(lab, "listener") for _ in range(2)]
    for turn in turns:
        await terminate(lab, turn)
        await listed_as_over(lab, turn)
    await asyncio.gather(*(look(lab) for _ in range(3)))
    for turn in turns:
        await settled(lab, turn.request_id)

        async def told(request_id: str = turn.request_id) -> bool:
            return ("on_turn_end", request_id, "error lost") in HEARD

        await eventually(told, "on_turn_end was told")
        await look(lab)
        assert [what for what in HEARD if what[1] == turn.request_id] == [
            ("on_chat_error", turn.request_id, "recovery"),
            ("on_chat_response", turn.request_id, "error"),
            ("on_turn_end", turn.request_id, "error lost"),
        ]
        result = await turn.result(WAIT)
        assert result.error == TurnError("lost", "Something broke. Please ask again.")


async def test_hooks_hear_of_a_lost_turn_that_somebody_else_has_settled(lab: Lab) -> None:
    """A client that waits settles the rows by itself where no worker is alive."""
    turn = await stalled(lab, "listener")
    await terminate(lab, turn)
    await lab.store.finish(Ending(turn.request_id, "error", "error", TurnError("lost", "settled by a client")))
    state = await lab.client.execute_workflow(
        SETTLE_WORKFLOW, SettleInput(turn.request_id), id=settle_id(turn.request_id), task_queue=lab.task_queue
    )
    assert state == "settled"
    heard = [what for what in HEARD if what[1] == turn.request_id]
    assert [what[0] for what in heard] == ["on_chat_response", "on_turn_end"]


async def test_a_waiting_client_lets_the_hooks_speak_of_a_lost_turn(lab: Lab) -> None:
    turn = await stalled(lab, "listener")
    await terminate(lab, turn)
    result = await turn.result(WAIT)
    assert result.error == TurnError("lost", "Something broke. Please ask again.")


async def test_without_a_worker_a_client_settles_a_lost_turn_by_itself(lab: Lab) -> None:
    request_id = new_request_id()
    await lab.store.begin(admission(request_id, lab.thread()))
    lost = await lab.client.start_workflow("EverturnTurn", id=workflow_id(request_id), task_queue="nobody-polls-it")
    await lost.terminate()
    assert await lab.chat.cancel_chat(request_id) == "already_terminal"
    assert await status(lab, request_id) == "error"
    await lab.client.get_workflow_handle(settle_id(request_id)).terminate()


async def test_the_message_of_a_turn_that_was_never_started_is_removed(lab: Lab) -> None:
    abandoned, awaited = sorted((new_request_id(), new_request_id()))
    for request_id in (abandoned, awaited):
        await lab.store.put_draft(request_id, "d", [text("a long message")])
    await lab.client.start_workflow(
        "EverturnTurn", id=workflow_id(awaited), task_queue="nobody-polls-it", static_summary="its worker is down"
    )
    try:
        await look(lab)
        assert await lab.store.leftovers.drafts(0, "", 10) == [abandoned, awaited], "young messages stay"
        assert (await look(lab, draft_age=0)).drafts == 1
        assert await lab.store.leftovers.drafts(0, "", 10) == [awaited]
    finally:
        await lab.client.get_workflow_handle(workflow_id(awaited)).terminate()


async def test_the_schedule_of_setup_settles_a_lost_turn_and_can_be_set_up_twice(lab: Lab) -> None:
    settings = Settings(task_queue=lab.task_queue, reconcile_every=3600)
    handle = lab.client.get_schedule_handle(schedule_id(lab.task_queue))
    assert await find_schedule(lab.client, lab.task_queue) is None
    assert await install_schedule(lab.client, settings) == "created"
    try:
        await handle.pause(note="for a test")
        assert await install_schedule(lab.client, settings.model_copy(update={"reconcile_every": 1800})) == "updated"
        found = await find_schedule(lab.client, lab.task_queue)
        assert found is not None
        assert [spec.every.total_seconds() for spec in found.schedule.spec.intervals] == [1800]
        assert found.schedule.state.paused, "an operator's pause outlives a set-up"
        await handle.unpause()
        turn = await stalled(lab)
        await terminate(lab, turn)
        await listed_as_over(lab, turn)
        await _older_than_the_grace(lab, turn.request_id)
        await handle.trigger()
        await settled(lab, turn.request_id)
    finally:
        await handle.delete()


async def _older_than_the_grace(lab: Lab, request_id: str) -> None:
    """Moves the turn's submission into the past."""
    import sqlite3

    with sqlite3.connect(lab.store_url.removeprefix("sqlite:///")) as connection:
        moved = "UPDATE turns SET submitted_at = '2020-01-01 00:00:00.000000' WHERE request_id = ?"
        assert connection.execute(moved, (request_id,)).rowcount == 1
