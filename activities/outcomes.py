"""A settled tool call as clients and the workflow see it."""

from __future__ import annotations

from everturn.activities.payloads import CallDone
from everturn.activities.previews import fingerprint
from everturn.chunks import TOOL_OUTPUT_AVAILABLE, TOOL_OUTPUT_ERROR, Event
from everturn.store.records import ToolCall


def outcome_events(call: ToolCall) -> list[Event]:
    if call.error is not None:
        return [Event(TOOL_OUTPUT_ERROR, {"toolCallId": call.tool_call_id, "errorText": call.error})]
    return [Event(TOOL_OUTPUT_AVAILABLE, {"toolCallId": call.tool_call_id, "output": call.output})]


def call_done(call: ToolCall) -> CallDone:
    return CallDone(
        tool_call_id=call.tool_call_id,
        state=call.state,
        duration_ms=call.duration_ms or 0,
        failed=call.error is not None,
        interrupted=call.state == "interrupted",
        fingerprint=call_fingerprint(call),
    )


def call_fingerprint(call: ToolCall) -> str:
    """ "" for a call that succeeded."""
    if call.error is None:
        return ""
    return fingerprint(call.tool_name, call.input if call.input is not None else call.raw_input, call.error)
