"""A request in the terms of the comparison, whichever of OpenAI's two APIs it came through."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.script import Script


@dataclass(frozen=True, slots=True)
class Ask:
    """script: of the newest user message that has one. results: tool results after it. tool: name of the first tool."""

    script: Script
    results: int
    tool: str
    streamed: bool
    usage_wanted: bool
    bytes_in: int

    @property
    def calls_tool(self) -> bool:
        return self.results < self.script.tools

    @property
    def call_id(self) -> str:
        return f"call_{self.script.turn}_{self.results}"

    @property
    def arguments(self) -> str:
        return json.dumps({"turn": self.script.turn, "n": self.results})


def read_chat(data: bytes) -> Ask:
    """From the body of a chat completion. Raises ValueError if no user message has a script."""
    body = json.loads(data)
    said: list[dict[str, Any]] = body["messages"]
    position, script = _newest_script([(m.get("role"), m.get("content")) for m in said])
    results = sum(message["role"] == "tool" for message in said[position + 1 :])
    tool = body["tools"][0]["function"]["name"] if body.get("tools") else ""
    usage = bool((body.get("stream_options") or {}).get("include_usage"))
    return Ask(script, results, tool, bool(body.get("stream")), usage, len(data))


def read_response(data: bytes) -> Ask:
    """From the body of a request to the Responses API. Raises ValueError if no user message has a script."""
    body = json.loads(data)
    given: Any = body["input"]
    said: list[dict[str, Any]] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    position, script = _newest_script([(m.get("role"), m.get("content")) for m in said])
    results = sum(item.get("type") == "function_call_output" for item in said[position + 1 :])
    tool = body["tools"][0]["name"] if body.get("tools") else ""
    return Ask(script, results, tool, bool(body.get("stream")), True, len(data))


def _newest_script(said: list[tuple[Any, Any]]) -> tuple[int, Script]:
    for position in range(len(said) - 1, -1, -1):
        role, content = said[position]
        if role == "user" and (script := Script.read(_text(content))):
            return position, script
    raise ValueError("no user message has a script")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or [])
