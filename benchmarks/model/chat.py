"""Answers as events of OpenAI's chat completions."""

from __future__ import annotations

import json
import time
from typing import Any

from benchmarks.model.reading import Ask


class ChatWriter:
    """The events of one answer, as bytes."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        identity = f"chatcmpl-{ask.script.turn}-{ask.results}"
        self._envelope = {"id": identity, "created": int(time.time()), "model": "fake"}
        chunk = json.dumps({**self._envelope, "object": "chat.completion.chunk"})[:-1]
        self._head = f'data: {chunk}, "choices": [{{"index": 0, "delta": '

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def token(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def call(self) -> bytes:
        """The whole tool call."""
        return self._chunk({"tool_calls": [{"index": 0, **self._call()}]})

    def end(self) -> bytes:
        reason = "tool_calls" if self._ask.calls_tool else "stop"
        events = self._chunk({}, reason)
        if self._ask.usage_wanted:
            last = {**self._envelope, "object": "chat.completion.chunk", "choices": [], "usage": self._usage()}
            events += f"data: {json.dumps(last)}\n\n".encode()
        return events + b"data: [DONE]\n\n"

    def whole(self) -> dict[str, Any]:
        """The answer to a request that is not streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if self._ask.calls_tool:
            message["tool_calls"] = [self._call()]
        else:
            message["content"] = "".join(self._ask.script.words)
        reason = "tool_calls" if self._ask.calls_tool else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {**self._envelope, "object": "chat.completion", "choices": [choice], "usage": self._usage()}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return f'{self._head}{json.dumps(delta)}, "finish_reason": {json.dumps(finish)}}}]}}\n\n'.encode()

    def _call(self) -> dict[str, Any]:
        function = {"name": self._ask.tool, "arguments": self._ask.arguments}
        return {"id": self._ask.call_id, "type": "function", "function": function}

    def _usage(self) -> dict[str, int]:
        tokens = self._ask.script.tokens
        return {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
