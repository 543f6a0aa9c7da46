"""Whether messages that a hook made have OpenAI's chat format, as far as our own code reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from everturn.turns import JsonDict

ROLES: Final = frozenset({"user", "assistant", "system", "tool", "developer"})


def is_chat_format(messages: Sequence[JsonDict]) -> bool:
    """True if every message has a role, and content and tool calls in a form that can be sent."""
    return all(
        _is_role(message.get("role")) and _is_content(message.get("content")) and _are_calls(message.get("tool_calls"))
        for message in messages
    )


def _is_role(role: object) -> bool:
    return isinstance(role, str) and role in ROLES


def _is_content(content: object) -> bool:
    if content is None or isinstance(content, str):
        return True
    return isinstance(content, list) and all(_is_part(part) for part in cast(list[object], content))


def _is_part(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    fields = cast(JsonDict, part)
    return isinstance(fields.get("type"), str) and isinstance(fields.get("text", ""), str)


def _are_calls(calls: object) -> bool:
    if calls is None:
        return True
    return isinstance(calls, list) and all(_is_call(call) for call in cast(list[object], calls))


def _is_call(call: object) -> bool:
    if not isinstance(call, dict):
        return False
    function: object = cast(JsonDict, call).get("function")
    return isinstance(function, dict) and isinstance(cast(JsonDict, function).get("name"), str)
