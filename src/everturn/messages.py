"""Messages and their parts, in the shapes of the AI SDK's UIMessage.

A part is a JSON object with a `type`: text, reasoning, file, source-url, tool-<name>, data-<name>, step-start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from everturn.errors import BadInput, MessageTooLarge

Role = Literal["user", "assistant"]
Part = dict[str, Any]

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
"""Over this a user message is refused: a prompt of that size fits no model."""
INLINE_MESSAGE_BYTES = 256 * 1024
"""Over this a message goes to the store first: Temporal allows 2 MiB a payload, and history should stay small."""

_REQUIRED_TEXT = {"text": "text", "reasoning": "text", "file": "url", "source-url": "url"}
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # the escaped character, not a text that spells it out
_USER_PARTS = ("text", "file", "source-url")


@dataclass(frozen=True, slots=True)
class Message:
    """One stored message of a thread. hidden: kept for the record, left out of every prompt. Times: ISO 8601, UTC."""

    id: str
    role: Role
    parts: list[Part]
    request_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    hidden: bool = False
    created_at: str | None = None

    @property
    def text(self) -> str:
        return text_of(self.parts)


UserMessage = str | Part | Sequence[Part] | Mapping[str, Any]


def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """The text parts of a message, joined."""
    return "".join(str(p.get("text", "")) for p in parts if p.get("type") == "text")


def user_parts(message: object) -> list[Part]:
    """The parts of what an application submits: a string, one part, a list of parts, or {"role": "user", "parts": […]}.

    Raises BadInput or MessageTooLarge.
    """
    raw: object = message
    if isinstance(raw, str):
        raw = [{"type": "text", "text": raw}]
    elif isinstance(raw, Mapping):
        given = cast(Mapping[str, Any], raw)
        raw = _parts_of_message(given) if "parts" in given else [dict(given)]
    if not isinstance(raw, list | tuple) or not raw:
        raise BadInput(f"a message is a text, a part, or a list of parts, not {_short(message)}")
    parts = [_check_part(part, index) for index, part in enumerate(cast(Sequence[object], raw))]
    if not any(part["type"] != "text" or part["text"].strip() for part in parts):
        raise BadInput("the message is empty; send at least one part with content")
    size = json_size(parts, "the message")
    if size > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(size, MAX_MESSAGE_BYTES)
    return parts


def json_size(value: object, what: str) -> int:
    """Bytes of `value` as JSON; raises BadInput if it is not JSON."""
    return len(dump_json(value, what).encode())


def dump_json(value: object, what: str) -> str:
    """`value` as compact JSON text; raises BadInput naming `what` if it has no JSON form (NaN, lone surrogates)."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"{what} has text that is not valid Unicode: {error.reason} at character {error.start}"
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{what} has no JSON form: {error}") from error
    if _NUL.search(text):
        raise BadInput(f"{what} contains the character U+0000, which databases refuse; remove it")
    return text


def _parts_of_message(message: Mapping[str, Any]) -> object:
    role = message.get("role", "user")
    if role != "user":
        raise BadInput(f"only user messages can be submitted, not role {_short(role)}")
    return message["parts"]


def _check_part(part: object, index: int) -> Part:
    if not isinstance(part, Mapping):
        raise BadInput(f"part {index} of the message must be an object with a type, not {_short(part)}")
    given = {str(k): v for k, v in cast(Mapping[object, Any], part).items()}
    kind = given.get("type")
    if not isinstance(kind, str) or not (kind in _USER_PARTS or kind.startswith("data-")):
        raise BadInput(
            f"part {index} has the type {_short(kind)}; a user message takes {', '.join(_USER_PARTS)} or data-<name>"
        )
    needed = _REQUIRED_TEXT.get(kind)
    if needed is not None and not isinstance(given.get(needed), str):
        raise BadInput(f"part {index} ({kind}) needs a string in {needed!r}, not {_short(given.get(needed))}")
    return given


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
