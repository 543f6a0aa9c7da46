"""Answers as events of OpenAI's Responses API, which one of the contenders speaks."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

from benchmarks.model.reading import Ask


class ResponseWriter:
    """The events of one answer, as bytes."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._numbers = itertools.count(1)
        self._response = {
            "id": f"resp_{ask.script.turn}_{ask.results}",
            "object": "response",
            "created_at": int(time.time()),
            "model": "fake",
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        self._item = self._call_item() if ask.calls_tool else self._message_item()

    def begin(self) -> bytes:
        running = {**self._response, "status": "in_progress", "output": [], "usage": None}
        events = self._event("response.created", response=running)
        started: dict[str, Any] = {"arguments": ""} if self._ask.calls_tool else {"content": []}
        started = {**self._item, **started, "status": "in_progress"}
        events += self._event("response.output_item.added", output_index=0, item=started)
        if not self._ask.calls_tool:
            events += self._part("response.content_part.added", content_index=0, part=_text_part(""))
        return events

    def token(self, text: str) -> bytes:
        return self._part("response.output_text.delta", content_index=0, delta=text, logprobs=[])

    def call(self) -> bytes:
        """The whole tool call."""
        arguments = self._ask.arguments
        return self._part("response.function_call_arguments.delta", delta=arguments) + self._part(
            "response.function_call_arguments.done", arguments=arguments, name=self._ask.tool
        )

    def end(self) -> bytes:
        events = b""
        if not self._ask.calls_tool:
            text = "".join(self._ask.script.words)
            events += self._part("response.output_text.done", content_index=0, text=text, logprobs=[])
        events += self._event("response.output_item.done", output_index=0, item=self._item)
        return events + self._event("response.completed", response=self.whole())

    def whole(self) -> dict[str, Any]:
        """The answer to a request that is not streamed."""
        tokens = self._ask.script.tokens
        usage = {
            "input_tokens": 10,
            "output_tokens": tokens,
            "total_tokens": 10 + tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {**self._response, "status": "completed", "output": [self._item], "usage": usage}

    def _call_item(self) -> dict[str, Any]:
        ask = self._ask
        identity = {"id": f"fc_{ask.script.turn}_{ask.results}", "type": "function_call", "status": "completed"}
        return {**identity, "call_id": ask.call_id, "name": ask.tool, "arguments": ask.arguments}

    def _message_item(self) -> dict[str, Any]:
        content = [_text_part("".join(self._ask.script.words))]
        identity = {"id": f"msg_{self._ask.script.turn}", "type": "message", "status": "completed"}
        return {**identity, "role": "assistant", "content": content}

    def _part(self, kind: str, **facts: Any) -> bytes:
        return self._event(kind, output_index=0, item_id=self._item["id"], **facts)

    def _event(self, kind: str, **facts: Any) -> bytes:
        data = {"type": kind, "sequence_number": next(self._numbers), **facts}
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}
