"""What a model says, as events of OpenAI's chat completions and of Anthropic's messages."""

from __future__ import annotations

import json
import time
import uuid
from typing import Protocol, cast

from everturn.activities.scripted.ask import Ask
from everturn.activities.scripted.moves import CallPart, Content, Fail, FailInStream, Finish, Refuse, Say, Think
from everturn.activities.scripted.wire import sse
from everturn.turns import JsonDict

_CHARS_PER_TOKEN = 4

Event = tuple[str | None, JsonDict | str]
"""Name of a server-sent event (None: unnamed) and its data."""


class Dialect(Protocol):
    """Turns content into events; one object per answer."""

    def begin(self) -> list[Event]: ...
    def events(self, move: Content) -> list[Event]: ...
    def tail(self) -> list[Event]: ...
    def error_body(self, fail: Fail) -> JsonDict: ...
    def error_event(self, fail: FailInStream) -> Event: ...


class OpenAIDialect:
    """Chat completions: chunks with deltas, then usage if it was asked for, then `[DONE]`."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.id = f"chatcmpl-{uuid.uuid4().hex[:24]}"
        self.created = int(time.time())
        self.tokens = 0
        self.output_tokens: int | None = None

    def begin(self) -> list[Event]:
        return [(None, self.chunk({"role": "assistant", "content": ""}))]

    def events(self, move: Content) -> list[Event]:
        if isinstance(move, Finish):
            self.output_tokens = move.output_tokens
            return [(None, self.chunk({}, move.reason))]
        self.tokens += 1
        return [(None, self.chunk(openai_delta(move)))]

    def tail(self) -> list[Event]:
        done: Event = (None, "[DONE]")
        options = self.ask.body.get("stream_options")
        if not isinstance(options, dict) or not cast(JsonDict, options).get("include_usage"):
            return [done]
        return [(None, {**self._envelope(), "choices": [], "usage": self.usage()}), done]

    def usage(self) -> JsonDict:
        prompt = max(1, self.ask.size // _CHARS_PER_TOKEN)
        output = self.tokens if self.output_tokens is None else self.output_tokens
        return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}

    def chunk(self, delta: JsonDict, finish: str | None = None) -> JsonDict:
        return {**self._envelope(), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def error_body(self, fail: Fail) -> JsonDict:
        return {"error": {"message": fail.message, "type": fail.type, "param": None, "code": fail.code}}

    def error_event(self, fail: FailInStream) -> Event:
        return None, {"error": {"message": fail.message, "type": fail.type, "code": fail.code}}

    def _envelope(self) -> JsonDict:
        return {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.ask.model}


def openai_delta(move: Say | Think | CallPart | Refuse) -> JsonDict:
    """One move as the `delta` of a chunk."""
    match move:
        case Say(text):
            return {"content": text}
        case Think(text):
            return {"reasoning_content": text}
        case Refuse(text):
            return {"refusal": text}
        case CallPart():
            return {"tool_calls": [_openai_call(move)]}


def _openai_call(part: CallPart) -> JsonDict:
    function: JsonDict = {"arguments": part.arguments}
    call: JsonDict = {"index": part.index, "function": function, **(part.provider or {})}
    if part.id is not None:
        call |= {"id": part.id, "type": "function"}
    if part.name is not None:
        function["name"] = part.name
    return call


_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


class AnthropicDialect:
    """Messages: content blocks that start, grow and stop, then the stop reason and the usage."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.tokens = 0
        self._block = -1
        self._kind: str | None = None

    def begin(self) -> list[Event]:
        usage = {"input_tokens": max(1, self.ask.size // _CHARS_PER_TOKEN), "output_tokens": 0}
        message: JsonDict = {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "content": [],
        }
        message |= {"model": self.ask.model, "stop_reason": None, "stop_sequence": None, "usage": usage}
        return [("message_start", {"type": "message_start", "message": message}), ("ping", {"type": "ping"})]

    def events(self, move: Content) -> list[Event]:
        match move:
            case Finish(reason, output_tokens):
                return self._finish(reason, output_tokens)
            case Say(text) | Refuse(text):
                return self._grow("text", {"type": "text", "text": ""}, {"type": "text_delta", "text": text})
            case Think():
                return self._think(move)
            case CallPart(index, call_id, name, arguments):
                start: JsonDict = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
                kind = f"call{index}" if call_id is None else f"call{index}:{call_id}"
                same = call_id is None and self._kind is not None and self._kind.partition(":")[0] == kind
                delta = {"type": "input_json_delta", "partial_json": arguments}
                return self._grow(self._kind if same and self._kind else kind, start, delta)

    def tail(self) -> list[Event]:
        return [("message_stop", {"type": "message_stop"})]

    def error_body(self, fail: Fail) -> JsonDict:
        return {"type": "error", "error": {"type": fail.type, "message": fail.message}}

    def error_event(self, fail: FailInStream) -> Event:
        return "error", {"type": "error", "error": {"type": fail.type, "message": fail.message}}

    def _think(self, move: Think) -> list[Event]:
        start = {"type": "thinking", "thinking": "", "signature": ""}
        if move.signature is None:
            return self._grow("thinking", start, {"type": "thinking_delta", "thinking": move.text})
        return self._grow("thinking", start, {"type": "signature_delta", "signature": move.signature})

    def _grow(self, kind: str, start: JsonDict, delta: JsonDict) -> list[Event]:
        self.tokens += 1
        events: list[Event] = []
        if kind != self._kind:
            events += self._stop()
            self._block, self._kind = self._block + 1, kind
            block = {"type": "content_block_start", "index": self._block, "content_block": start}
            events.append(("content_block_start", block))
        return [*events, ("content_block_delta", {"type": "content_block_delta", "index": self._block, "delta": delta})]

    def _stop(self) -> list[Event]:
        if self._kind is None:
            return []
        self._kind = None
        return [("content_block_stop", {"type": "content_block_stop", "index": self._block})]

    def _finish(self, reason: str, output_tokens: int | None) -> list[Event]:
        delta = {"stop_reason": _STOP_REASONS.get(reason, reason), "stop_sequence": None}
        usage = {"output_tokens": self.tokens if output_tokens is None else output_tokens}
        return [*self._stop(), ("message_delta", {"type": "message_delta", "delta": delta, "usage": usage})]


def encode(event: Event, newline: str = "\n") -> bytes:
    name, data = event
    return sse(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False), name, newline)
