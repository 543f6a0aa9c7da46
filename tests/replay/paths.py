"""Every way that a workflow of ours can take, as a turn that takes it. A new way gets its function here."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from everturn import Debounce, ThreadBusy, Turn
from everturn.activities.pace import RUNS
from everturn.activities.payloads import WORKFLOW, CancelRequest
from everturn.activities.recovery_payloads import (
    RECONCILE_WORKFLOW,
    SETTLE_WORKFLOW,
    ReconcileInput,
    SettleInput,
)
from everturn.activities.settling import settle_id
from everturn.client.request import make_input
from everturn.ids import new_request_id, workflow_id
from tests.integration.turns.lab import WAIT, Lab, eventually
from tests.replay.agents import CLIENTS

LONG = "fact " * 400
Recorded = Turn | str
"""The turn whose workflow is recorded, or the id of another workflow."""


async def ended(turn: Turn) -> Turn:
    await turn.result(60)
    return turn


async def plain(lab: Lab) -> Turn:
    return await ended(await lab.play("say text='hello there'"))


async def tools(lab: Lab) -> Turn:
    script = 'tools calls=3 tool=add args=\'{"a": 1, "b": 2}\' | tools tool=fail args=\'{"reason": "no"}\' | ok'
    return await ended(await lab.play(script))


async def tool_loop(lab: Lab) -> Turn:
    return await ended(await lab.play('loop tool=fail args=\'{"reason": "no"}\''))


async def hooks(lab: Lab) -> Turn:
    return await ended(await lab.play('tools calls=2 tool=add args=\'{"a": 1, "b": 2}\'', agent="everywhere"))


async def hooks_and_error(lab: Lab) -> Turn:
    return await ended(await lab.play("status code=400", agent="everywhere"))


async def blocked(lab: Lab) -> Turn:
    return await ended(await lab.play("ok", agent="doorkeeper"))


async def error_after_retries(lab: Lab) -> Turn:
    return await ended(await lab.play("status code=500 retry_after_ms=50"))


async def success_after_retry(lab: Lab) -> Turn:
    return await ended(await lab.play("cut how=reset times=1 then=ok"))


async def empty_response(lab: Lab) -> Turn:
    return await ended(await lab.play("empty"))


async def unknown_agent(lab: Lab) -> Turn:
    return await ended(await lab.play("ok", agent="nobody"))


async def cancelled_in_stream(lab: Lab) -> Turn:
    turn = await lab.play("text tokens=1000 delay_ms=20")
    await lab.until(turn, "text-delta")
    await turn.cancel("user pressed stop")
    return await ended(turn)


async def cancelled_in_tool(lab: Lab) -> Turn:
    turn = await lab.play("tools tool=wait_long args='{}'")
    await lab.until(turn, "tool-input-available")
    await turn.cancel()
    return await ended(turn)


async def cancelled_in_temporal(lab: Lab) -> Turn:
    turn = await lab.play("text tokens=1000 delay_ms=20")
    await lab.until(turn, "text-delta")
    await lab.client.get_workflow_handle(workflow_id(turn.request_id)).cancel()
    return await ended(turn)


async def queued(lab: Lab) -> Turn:
    first = await lab.play("text tokens=20 delay_ms=30")
    second = await lab.play("ok", first.thread_id)
    await lab.until(second, "data-queued")
    return await ended(second)


async def queued_behind_a_terminated_turn(lab: Lab) -> Turn:
    first = await lab.play("stall tokens=2")
    await lab.until(first, "text-delta")
    second = await lab.play("ok", first.thread_id)
    await lab.until(second, "data-queued")
    await lab.client.get_workflow_handle(workflow_id(first.request_id)).terminate()
    return await ended(second)


async def cancelled_in_queue(lab: Lab) -> Turn:
    first = await lab.play("text tokens=60 delay_ms=30")
    second = await lab.play("ok", first.thread_id)
    await lab.until(second, "data-queued")
    await second.cancel()
    await ended(first)
    return await ended(second)


async def approved(lab: Lab) -> Turn:
    turn = await lab.play("tools tool=pay args='{\"amount\": 7}'")
    asked = await lab.until(turn, "tool-approval-request")
    await lab.chat.approve(turn.request_id, asked.data["toolCallId"])
    return await ended(turn)


async def called(lab: Lab, tool: str, agent: str = "agent", then: str = "ok", **arguments: Any) -> Turn:
    return await lab.play(f"tools tool={tool} args='{json.dumps(arguments)}' | {then}", agent=agent)


async def approved_with_other_arguments(lab: Lab) -> Turn:
    turn = await called(lab, "pay", amount=7)
    asked = await lab.until(turn, "tool-approval-request")
    await lab.chat.approve(turn.request_id, asked.data["toolCallId"], {"amount": 8})
    return await ended(turn)


async def denied(lab: Lab) -> Turn:
    turn = await called(lab, "pay", amount=7)
    asked = await lab.until(turn, "tool-approval-request")
    await lab.chat.deny(turn.request_id, asked.data["toolCallId"], "too much")
    return await ended(turn)


async def two_approvals_answered_apart(lab: Lab) -> Turn:
    turn = await lab.play("tools calls=2 tool=pay args='{\"amount\": 7}' | ok")
    await lab.until(turn, "tool-approval-request")

    async def both() -> bool:
        return len(await lab.chat.pending(turn.thread_id)) == 2

    await eventually(both, "two calls wait")
    first, second = await lab.chat.pending(turn.thread_id)
    await lab.chat.deny(turn.request_id, second.tool_call_id)
    await lab.chat.approve(turn.request_id, first.tool_call_id)
    return await ended(turn)


async def approval_expired(lab: Lab) -> Turn:
    return await ended(await called(lab, "add", "impatient", a=1, b=2))


async def client_tool(lab: Lab) -> Turn:
    turn = await called(lab, "locate")
    asked = await lab.until(turn, "tool-input-available")

    async def waits() -> bool:
        return await lab.chat.pending(turn.thread_id) != []

    await eventually(waits, "the call waits for its front end")
    await lab.chat.submit_tool_result(turn.request_id, asked.data["toolCallId"], {"city": "Paris"})
    return await ended(turn)


async def cancelled_in_approval(lab: Lab) -> Turn:
    turn = await called(lab, "pay", amount=7)
    await lab.until(turn, "tool-approval-request")
    await turn.cancel()
    return await ended(turn)


async def cancelled_in_hook(lab: Lab) -> Turn:
    turn = await lab.play("ok", agent="slow")
    await lab.until(turn, "start")
    await turn.cancel()
    return await ended(turn)


async def cancelled_before_retry(lab: Lab) -> Turn:
    turn = await lab.play("rate_limit retry_after=50")
    await lab.until(turn, "data-retrying")
    await turn.cancel()
    return await ended(turn)


async def cancelled_by_on_chat_error(lab: Lab) -> Turn:
    CLIENTS["chat"] = lab.chat
    return await ended(await lab.play("status code=400", agent="regretful"))


async def cancelled_before_begin(lab: Lab) -> Turn:
    """The stop arrives with the start, as after a time without workers."""
    given = make_input(
        lab.thread(),
        "hello",
        agent="agent",
        request_id=None,
        body=None,
        principal=None,
        tenant_id=None,
        policy="queue",
        metadata=None,
        client_tools=[],
    )
    await lab.client.start_workflow(
        WORKFLOW,
        given,
        id=workflow_id(given.request_id),
        task_queue=lab.task_queue,
        start_signal="cancel_chat",
        start_signal_args=[CancelRequest("changed my mind")],
    )
    return await ended(lab.chat.turn(given.request_id))


async def tool_blocked(lab: Lab) -> Turn:
    return await ended(await called(lab, "add", "guarded", a=1, b=2))


async def tool_retried(lab: Lab) -> Turn:
    return await ended(await called(lab, "shaky", name=lab.thread()))


async def quick_tools(lab: Lab) -> Turn:
    """A tool that was quick several times runs within the workflow task."""
    for _ in range(RUNS):
        await ended(await called(lab, "add", a=1, b=2))
    return await ended(await called(lab, "add", a=1, b=2))


async def unknown_tool(lab: Lab) -> Turn:
    return await ended(await lab.play("unknown_tool | ok"))


async def max_steps(lab: Lab) -> Turn:
    return await ended(await called(lab, "add", "short", a=1, b=2))


async def stop_when(lab: Lab) -> Turn:
    script = 'tools forever=1 sequential=1 tool=add args=\'{"a": 1, "b": 2}\''
    return await ended(await lab.play(script, agent="brief"))


async def compacted_by_overflow(lab: Lab) -> Turn:
    thread = lab.thread()
    for number in range(6):
        await ended(await lab.submit(thread, f"[[say text='answer {number}']] {LONG}"))
    return await ended(await lab.submit(thread, "[[overflow limit=9000]] the last question"))


async def compacted_ahead(lab: Lab) -> Turn:
    thread = lab.thread()
    for number in range(4):
        turn = await ended(await lab.submit(thread, f"[[say text='answer {number}']] {LONG}", "ahead"))
    return turn


async def overflow_without_a_way_out(lab: Lab) -> Turn:
    return await ended(await lab.play("overflow limit=10"))


async def another_model(lab: Lab) -> Turn:
    return await ended(await lab.play("ok", agent="following"))


async def output_repaired(lab: Lab) -> Turn:
    return await ended(await lab.play("say text='many' | structured", agent="form"))


async def output_invalid_twice(lab: Lab) -> Turn:
    return await ended(await lab.play("say text='many'", agent="form"))


async def hook_failed(lab: Lab) -> Turn:
    return await ended(await lab.play("ok", agent="broken"))


async def behind_a_running_turn(lab: Lab, count: int, policy: Any) -> list[Turn]:
    """Turns that met a running one, which has ended since."""
    first = await lab.play("text tokens=40 delay_ms=30")
    await lab.until(first, "text-delta")
    later = [await lab.play("ok", first.thread_id, policy=policy) for _ in range(count)]
    for turn in (first, *later):
        await ended(turn)
    return later


async def dropped(lab: Lab) -> Turn:
    (turn,) = await behind_a_running_turn(lab, 1, "drop")
    return turn


async def superseded(lab: Lab) -> Turn:
    turn, _ = await behind_a_running_turn(lab, 2, "latest")
    return turn


async def the_latest(lab: Lab) -> Turn:
    _, turn = await behind_a_running_turn(lab, 2, "latest")
    return turn


async def merged_with_others(lab: Lab) -> Turn:
    turn, _ = await behind_a_running_turn(lab, 2, "merge")
    return turn


async def answered_by_another(lab: Lab) -> Turn:
    _, turn = await behind_a_running_turn(lab, 2, "merge")
    return turn


async def debounced(lab: Lab) -> Turn:
    return await ended(await lab.play("ok", policy=Debounce(0.3)))


async def scheduled(lab: Lab) -> Turn:
    schedule_id, thread = lab.thread(), lab.thread()
    await lab.chat.schedule(schedule_id, thread, "[[ok]]", agent="everywhere", every=timedelta(seconds=1))

    async def fired() -> bool:
        return bool(await lab.chat.list_turns(thread))

    await eventually(fired, "the schedule fires")
    await lab.chat.unschedule(schedule_id)
    first = (await lab.chat.list_turns(thread))[-1]
    return await ended(lab.chat.turn(first.request_id))


async def continued(lab: Lab) -> Turn:
    first = await ended(await lab.play("say text='once upon a time'"))
    return await ended(await lab.chat.continue_last_turn(first.thread_id))


async def nothing_to_continue(lab: Lab) -> Turn:
    return await ended(await lab.chat.continue_last_turn(lab.thread(), agent="agent"))


async def admitted_or_refused(lab: Lab) -> Turn:
    """The client asks for the admission, which a turn with the policy queue does not need."""
    text = "[[text tokens=20 delay_ms=30]]"
    return await ended(await lab.submit(lab.thread(), text, policy="reject"))


async def refused_as_busy(lab: Lab) -> Turn:
    first = await lab.play("text tokens=60 delay_ms=30")
    await lab.until(first, "text-delta")
    storeless, request_id = await lab.storeless(), new_request_id()
    try:
        await storeless.submit(first.thread_id, "me too", agent="agent", policy="reject", request_id=request_id)
    except ThreadBusy:
        await ended(first)
        return lab.chat.turn(request_id)
    raise AssertionError("the second turn was taken")


async def id_of_another_request(lab: Lab) -> Recorded:
    """The store has the request id from a time that Temporal has forgotten."""
    turn = await ended(await lab.play("ok"))
    return await started_again(lab, turn, digest="another")


async def known_already(lab: Lab) -> Recorded:
    turn = await ended(await lab.play("ok"))
    return await started_again(lab, turn)


async def started_again(lab: Lab, turn: Turn, **changed: Any) -> str:
    """Starts a turn's workflow a second time, under another id, and waits for its end."""
    first = lab.client.get_workflow_handle(workflow_id(turn.request_id))
    started = (await first.fetch_history()).events[0].workflow_execution_started_event_attributes
    (given,) = await lab.client.data_converter.decode(started.input.payloads)
    name = f"again-{turn.request_id}"
    again = await lab.client.start_workflow(WORKFLOW, {**given, **changed}, id=name, task_queue=lab.task_queue)
    return again.id


async def closed(lab: Lab, name: str) -> bool:
    return (await lab.client.get_workflow_handle(name).describe()).close_time is not None


async def terminated(lab: Lab, agent: str = "agent") -> Turn:
    turn = await lab.play("stall tokens=2", agent=agent)
    await lab.until(turn, "text-delta")
    await lab.client.get_workflow_handle(workflow_id(turn.request_id)).terminate()
    return turn


async def settled(lab: Lab) -> Recorded:
    turn = await terminated(lab, "everywhere")
    return await settle(lab, turn)


async def settled_without_hooks(lab: Lab) -> Recorded:
    return await settle(lab, await terminated(lab))


async def left_alone(lab: Lab) -> Recorded:
    turn = await lab.play("text tokens=20 delay_ms=50")
    await lab.until(turn, "text-delta")
    name = await settle(lab, turn)
    await ended(turn)
    return name


async def settle(lab: Lab, turn: Turn) -> str:
    name, given = settle_id(turn.request_id), SettleInput(turn.request_id)
    await lab.client.execute_workflow(SETTLE_WORKFLOW, given, id=name, task_queue=lab.task_queue)
    return name


async def reconciled(lab: Lab) -> Recorded:
    turn = await terminated(lab)
    name = f"reconcile-{new_request_id()}"
    given = ReconcileInput(grace=0)
    await lab.client.execute_workflow(RECONCILE_WORKFLOW, given, id=name, task_queue=lab.task_queue)
    await turn.result(WAIT)
    return name


PATHS: dict[str, Callable[[Lab], Awaitable[Recorded]]] = {
    path.__name__: path
    for path in (
        plain,
        tools,
        tool_loop,
        hooks,
        hooks_and_error,
        blocked,
        error_after_retries,
        success_after_retry,
        empty_response,
        unknown_agent,
        cancelled_in_stream,
        cancelled_in_tool,
        cancelled_in_temporal,
        cancelled_in_queue,
        cancelled_in_approval,
        cancelled_in_hook,
        cancelled_before_retry,
        cancelled_before_begin,
        cancelled_by_on_chat_error,
        queued,
        queued_behind_a_terminated_turn,
        approved,
        approved_with_other_arguments,
        denied,
        two_approvals_answered_apart,
        approval_expired,
        client_tool,
        tool_blocked,
        tool_retried,
        quick_tools,
        unknown_tool,
        max_steps,
        stop_when,
        compacted_by_overflow,
        compacted_ahead,
        overflow_without_a_way_out,
        another_model,
        output_repaired,
        output_invalid_twice,
        hook_failed,
        continued,
        nothing_to_continue,
        dropped,
        superseded,
        the_latest,
        merged_with_others,
        answered_by_another,
        debounced,
        scheduled,
        admitted_or_refused,
        refused_as_busy,
        id_of_another_request,
        known_already,
        settled,
        settled_without_hooks,
        left_alone,
        reconciled,
    )
}
