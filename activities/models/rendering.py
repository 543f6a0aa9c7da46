"""Stored messages and steps in OpenAI's chat format, one assistant message per step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from everturn.activities.models.blocks import THINKING_KEY
from everturn.activities.models.quirks import Quirks
from everturn.activities.models.repair import MISSING_RESULT
from everturn.messages import Message, Part
from everturn.store.records import SETTLED_CALLS, StepRecord, ToolCall
from everturn.turns import JsonDict

INVALID_OUTPUT = "data-invalid-output"
"""Part of a step: an answer that did not fit the turn's output, with what was wrong with it."""
REPAIR_TEXT = (
    "Your answer does not have the required form: {problem}\nAnswer again with nothing but the corrected JSON."
)
CUT_MARK = "… [cut: {left:,} of {size:,} characters are shown]"
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


@dataclass(slots=True)
class _Step:
    """Content of one assistant message while it is collected."""

    texts: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    thinking: list[JsonDict] = field(default_factory=list[JsonDict])
    calls: list[JsonDict] = field(default_factory=list[JsonDict])
    results: list[JsonDict] = field(default_factory=list[JsonDict])

    def take(self, part: Part) -> None:
        """Adds a text or reasoning part; other parts are no concern of the model."""
        if part.get("type") == "text":
            self.texts.append(str(part.get("text") or ""))
        elif part.get("type") == "reasoning":
            self.reasoning.append(str(part.get("text") or ""))
            metadata = cast(JsonDict, part.get("providerMetadata") or {})
            self.thinking += metadata.get(THINKING_KEY, [])

    def messages(self, quirks: Quirks, *, in_loop: bool) -> list[JsonDict]:
        """in_loop: the step belongs to the turn that goes on, whose reasoning some providers want back."""
        if not (self.calls or any(self.texts) or self.thinking):
            return []
        message: JsonDict = {"role": "assistant", "content": "".join(self.texts) or None}
        if self.calls:
            message["tool_calls"] = self.calls
        signed = [
            block for block in self.thinking if block.get("signature") or block.get("type") == "redacted_thinking"
        ]
        if quirks.thinking_blocks and signed:
            message["thinking_blocks"] = signed
        if quirks.reasoning_content and in_loop and self.calls and any(self.reasoning):
            message["reasoning_content"] = "".join(self.reasoning)
        return [message, *self.results]


def render_user(message: Message) -> JsonDict:
    """A user message; plain text stays a plain string, as every provider takes it."""
    content = [rendered for part in message.parts if (rendered := _user_part(part)) is not None]
    if all(item["type"] == "text" for item in content):
        return {"role": "user", "content": "\n".join(item["text"] for item in content)}
    return {"role": "user", "content": content}


def render_assistant(message: Message, quirks: Quirks, limit: int) -> list[JsonDict]:
    """A stored assistant message: its steps in order, each followed by its tool results. limit: characters a result."""
    rendered: list[JsonDict] = []
    step = _Step()
    for part in message.parts:
        kind = str(part.get("type"))
        if kind == "step-start" or (kind == "text" and step.calls):
            rendered += step.messages(quirks, in_loop=False)
            step = _Step()
        if kind.startswith("tool-") or kind == "dynamic-tool":
            name = str(part.get("toolName") or kind.removeprefix("tool-"))
            call_id = str(part.get("toolCallId"))
            given = part.get("rawInput", part.get("input"))
            step.calls.append(_call(call_id, name, given, part.get("callProviderMetadata")))
            step.results.append(_result(call_id, _part_output(part), limit))
        else:
            step.take(part)
    return rendered + step.messages(quirks, in_loop=False)


def render_step(record: StepRecord, quirks: Quirks, limit: int) -> list[JsonDict]:
    """A finished step of the turn that goes on."""
    step = _Step()
    repair: list[JsonDict] = []
    for part in record.parts:
        step.take(part)
        if part.get("type") == INVALID_OUTPUT:
            data = cast(JsonDict, part["data"])
            step.texts.append(str(data["text"]))
            repair.append({"role": "user", "content": REPAIR_TEXT.format(problem=data["problem"])})
    for call in record.calls:
        given = next((g for g in (call.model_input, call.input, call.raw_input) if g is not None), None)
        step.calls.append(_call(call.tool_call_id, call.tool_name, given, call.provider))
        step.results.append(_result(call.tool_call_id, _call_output(call), limit))
    return [*step.messages(quirks, in_loop=True), *repair]


def as_text(output: object) -> str:
    """A tool's output as the model reads it: strings as they are, anything else as JSON."""
    return output if isinstance(output, str) else _ENCODER.encode(output)


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + CUT_MARK.format(left=limit, size=len(text))


def _call(call_id: str, name: str, given: object, provider: object) -> JsonDict:
    function = {"name": name, "arguments": as_text({} if given is None else given)}
    fields = cast(JsonDict, provider) if isinstance(provider, Mapping) else {}
    return {**fields, "id": call_id, "type": "function", "function": function}


def _result(call_id: str, content: str, limit: int) -> JsonDict:
    return {"role": "tool", "tool_call_id": call_id, "content": cut(content, limit)}


def _part_output(part: Part) -> str:
    if part.get("state") == "output-error" or part.get("errorText"):
        return _error(str(part.get("errorText") or "the tool failed"))
    return as_text(part["output"]) if "output" in part else MISSING_RESULT


def _call_output(call: ToolCall) -> str:
    if call.state not in SETTLED_CALLS:
        return MISSING_RESULT
    if call.error is not None:
        return _error(call.error)
    if call.state in ("unknown", "interrupted", "error"):
        return _error(f"the tool call ended as {call.state}")
    return as_text(call.output)


def _error(text: str) -> str:
    return json.dumps({"error": text}, ensure_ascii=False)


def _user_part(part: Part) -> JsonDict | None:
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": str(part.get("text") or "")}
    if kind == "source-url":
        return {"type": "text", "text": f"[{part.get('title') or part['url']}]({part['url']})"}
    return _file_part(part) if kind == "file" else None


def _file_part(part: Part) -> JsonDict:
    url, media_type = str(part["url"]), str(part.get("mediaType") or "")
    if media_type.startswith("image/") or url.startswith("data:image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    key = "file_data" if url.startswith("data:") else "file_id"
    optional = {"filename": part.get("filename"), "format": media_type}
    return {"type": "file", "file": {key: url, **{name: value for name, value in optional.items() if value}}}


def render_steps(records: Iterable[StepRecord], quirks: Quirks, limit: int) -> list[JsonDict]:
    return [message for record in records for message in render_step(record, quirks, limit)]


def render_transcript(messages: Sequence[Message], quirks: Quirks, limit: int) -> list[JsonDict]:
    """All visible messages in order."""
    rendered: list[JsonDict] = []
    for message in messages:
        if not message.hidden:
            rendered += [render_user(message)] if message.role == "user" else render_assistant(message, quirks, limit)
    return rendered
