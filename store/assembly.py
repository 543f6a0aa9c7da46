"""The assistant message of a turn, put together from its steps: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everturn.chunks import TEXT_DELTA, TEXT_START
from everturn.messages import Part
from everturn.store.records import StepRecord, ToolCall
from everturn.turns import JsonDict

STEP_START: Part = {"type": "step-start"}
_OUTPUT_STATES = frozenset({"done", "blocked", "substituted"})
_CLOSED = ("text", "reasoning")


def parts_of_steps(steps: Iterable[StepRecord]) -> list[Part]:
    """The parts of finished steps in order; a step without content leaves none."""
    parts: list[Part] = []
    for step in steps:
        calls = {call.tool_call_id: call for call in step.calls}
        content = [part for raw in step.parts for part in _part(raw, calls)]
        if content:
            parts += [dict(STEP_START), *content]
    return parts


def parts_of_stream(events: Iterable[tuple[str, JsonDict]]) -> list[Part]:
    """What a step that never finished had streamed: its text, one part per text block."""
    texts: dict[str, str] = {}
    for kind, data in events:
        if kind in (TEXT_START, TEXT_DELTA):
            block = str(data.get("id", ""))
            texts[block] = texts.get(block, "") + str(data.get("delta", ""))
    parts = [text_part(text) for text in texts.values() if text]
    return [dict(STEP_START), *parts] if parts else []


def text_part(text: str) -> Part:
    return {"type": "text", "text": text, "state": "done"}


def tool_part(call: ToolCall) -> Part:
    """A settled call as a part; a part has an output or an error text, never neither."""
    part: Part = {
        "type": f"tool-{call.tool_name}",
        "toolCallId": call.tool_call_id,
        "state": "output-available" if call.state in _OUTPUT_STATES else "output-error",
        "input": call.input if call.input is not None else {},
    }
    if call.input is None and call.raw_input is not None:
        part["rawInput"] = call.raw_input
    if call.provider is not None:
        part["callProviderMetadata"] = call.provider
    if call.state in _OUTPUT_STATES:
        part["output"] = call.output
    else:
        part["errorText"] = call.error or f"the tool call ended as {call.state}"
    return part


def texts_of(parts: Sequence[Part]) -> list[str]:
    return [str(part["text"]) for part in parts if part.get("type") == "text" and part.get("text")]


def _part(raw: Part, calls: dict[str, ToolCall]) -> list[Part]:
    kind = raw.get("type")
    if kind == "tool-call":
        call = calls.get(str(raw.get("toolCallId")))
        return [tool_part(call)] if call is not None else []
    if kind not in _CLOSED:
        return [raw]
    keeps = raw.get("text") or raw.get("providerMetadata")
    return [{**raw, "state": "done"}] if keeps else []
