"""Older messages shortened for the prompt: pure; what is stored stays whole."""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from everturn.hooks.session import Truncation
from everturn.messages import Message, Part

STRIDE: Final = 8
"""The boundary between shortened and whole messages moves in steps, so that the prompt's beginning stays the same for
several turns and provider caches keep hitting."""
MARK: Final = "… [cut]"


def truncated(messages: Sequence[Message], limits: Truncation) -> list[Message]:
    """The messages, all but the last ones with tool outputs and texts cut to the limits."""
    boundary = boundary_of(len(messages), limits.keep_last)
    return [*(_shortened(message, limits) for message in messages[:boundary]), *messages[boundary:]]


def boundary_of(count: int, keep_last: int) -> int:
    """How many messages from the beginning are shortened; at least `keep_last` stay whole."""
    return max(0, count - keep_last) // STRIDE * STRIDE


def _shortened(message: Message, limits: Truncation) -> Message:
    parts = [_cut_part(part, limits) for part in message.parts]
    unchanged = all(map(operator.is_, parts, message.parts))
    return message if unchanged else replace(message, parts=parts)


def _cut_part(part: Part, limits: Truncation) -> Part:
    kind = str(part.get("type"))
    if kind in ("text", "reasoning"):
        text = str(part.get("text") or "")
        return part if len(text) <= limits.text else {**part, "text": _cut(text, limits.text)}
    if not kind.startswith("tool-") or part.get("output") is None:
        return part
    output = part["output"]
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
    return part if len(text) <= limits.tool_output else {**part, "output": _cut(text, limits.tool_output)}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + MARK
