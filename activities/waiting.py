"""Tool calls that wait for somebody: asking, and taking the answer."""

from __future__ import annotations

from dataclasses import replace

from temporalio import activity
from temporalio.exceptions import ApplicationError

from everturn.activities.outcomes import call_done, outcome_events
from everturn.activities.payloads import CallDecision, activity_name
from everturn.activities.services import Activities
from everturn.activities.tool_values import ToolValues
from everturn.activities.values import MAX_ERROR_BYTES, for_model
from everturn.activities.wait_payloads import WaitAnswer, WaitInput
from everturn.chunks import TOOL_APPROVAL_REQUEST, Event
from everturn.hooks.log import cut
from everturn.hooks.tools import ToolInputError
from everturn.store.records import SETTLED_CALLS, CallWait, ToolCall


class WaitActivities(Activities):
    """open_wait and resolve_wait."""

    @activity.defn(name=activity_name("open_wait"))
    async def open_wait(self, given: WaitInput) -> bool:
        """Records that the call waits and, for an approval, asks for it in the stream. False if the turn is over."""
        call = await self._store.call(given.request_id, given.tool_call_id)
        events: list[Event] = []
        if given.kind == "approval":
            facts = {
                "approvalId": given.tool_call_id,
                "toolCallId": given.tool_call_id,
                "toolName": call.tool_name,
                "input": call.input,
                "reason": given.reason,
            }
            events.append(Event(TOOL_APPROVAL_REQUEST, facts))
        wait = CallWait(given.tool_call_id, given.kind, given.reason, given.until)  # type: ignore[arg-type]
        return await self._store.open_wait(given.request_id, wait, events)

    @activity.defn(name=activity_name("resolve_wait"))
    async def resolve_wait(self, given: WaitAnswer) -> CallDecision:
        """What the answer comes to. Raises BadInput (final) for arguments that do not fit the tool."""
        call = await self._store.call(given.request_id, given.tool_call_id)
        if call.state in SETTLED_CALLS:
            return CallDecision(call_done(call))
        values = self._tool_values(given.agent, await self._store.load_turn(given.request_id))
        if given.answer == "approved":
            await self._approved(given, call, values)
            return CallDecision()
        if given.answer == "result":
            return await self._settle(given, _with_result(call, given, values), values)
        return await self._settle(given, replace(call, state="denied", error=_denial(given), duration_ms=0), values)

    async def _approved(self, given: WaitAnswer, call: ToolCall, values: ToolValues) -> None:
        if given.input is not None:
            call = values.with_arguments(call, given.input)
            tool = await self._tool(given.request_id, given.agent, given.tool_name)
            try:
                if tool is not None:
                    tool.validated(given.input)
            except ToolInputError as error:
                raise ApplicationError(str(error), type="BadInput", non_retryable=True) from error
        new_input = call.input if given.input is not None else None
        await self._store.approve_wait(given.request_id, given.tool_call_id, new_input, call.run_input)
        await values.record(self._store, given.request_id, call.step)

    async def _settle(self, given: WaitAnswer, call: ToolCall, values: ToolValues) -> CallDecision:
        settled = values.settled(call)
        await values.record(self._store, given.request_id, call.step)
        events = outcome_events(settled) if given.announce else []
        return CallDecision(call_done(await self._store.settle_call(given.request_id, settled, events)))


def _with_result(call: ToolCall, given: WaitAnswer, values: ToolValues) -> ToolCall:
    if given.error is not None:
        return replace(call, state="error", error=cut(given.error, MAX_ERROR_BYTES), duration_ms=0)
    whole = values.shown(given.output)
    shown, was_cut = for_model(whole)
    return replace(call, state="done", output=shown, raw_output=whole if was_cut else None, duration_ms=0)


def _denial(given: WaitAnswer) -> str:
    if given.answer == "expired":
        return "Nobody answered in time, so this call was not run."
    reason = cut((given.error or "").strip(), MAX_ERROR_BYTES)
    return f"The user denied this call: {reason}" if reason else "The user denied this call."
