"""Messages and their parts, in the shapes of the AI SDK's UIMessage.

A part is a JSON object with a `type`: text, reasoning, file, source-url, tool-<name>, data-<name>, step-start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from everturn.checks import shown
from everturn.errors import BadInput, MessageTooLarge

Role = Literal["user", "assistant"]
Part = dict[str, Any]

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
"""Over this a user message is refused: a prompt of that size fits no model."""
INLINE_MESSAGE_BYTES = 256 * 1024
"""Over this a message goes to the store first: Temporal allows 2 MiB a payload, and history should stay small."""

MAX_DEPTH = 100
"""Objects and lists inside each other. Python's own limit depends on who asks: what one process can write, another one
may not be able to read."""

_REQUIRED_TEXT = {"text": "text", "file": "url", "source-url": "url"}
_OPTIONAL_TEXT = ("mediaType", "filename", "title")
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
        given = cast(Mapping[object, Any], raw)
        raw = _parts_of_message(given) if "parts" in given else [given]
    if not isinstance(raw, list | tuple) or not raw:
        raise BadInput(f"a message is a text, a part, or a list of parts, not {shown(message)}")
    checked = [_check_part(part, index) for index, part in enumerate(cast(Sequence[object], raw))]
    text = dump_json(checked, "the message")
    size = len(text.encode())
    if size > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(size, MAX_MESSAGE_BYTES)
    parts: list[Part] = json.loads(text)  # as everybody else will see them: tuples are lists, all keys are strings
    if not any(part["type"] != "text" or part["text"].strip() for part in parts):
        raise BadInput("the message is empty; send at least one part with content")
    return parts


def json_size(value: object, what: str) -> int:
    """Bytes of `value` as JSON; raises BadInput if it is not JSON."""
    return len(dump_json(value, what).encode())


def dump_json(value: object, what: str) -> str:
    """`value` as compact JSON text; raises BadInput naming `what` if it has no JSON form that databases take (NaN, lone
    surrogates, U+0000), or nests too deep."""
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
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
        raise BadInput(f"{what} has more than {MAX_DEPTH} objects and lists inside each other; make it flatter")
    return text


def _is_too_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for node in level for child in _children(node)]
    return bool(level)


def _children(node: object) -> Iterable[object]:
    if isinstance(node, dict):
        return cast(dict[object, object], node).values()
    return cast(Sequence[object], node) if isinstance(node, list | tuple) else ()


def _parts_of_message(message: Mapping[object, Any]) -> object:
    role: object = message.get("role", "user")
    if role != "user":
        raise BadInput(f"only user messages can be submitted, not role {shown(role)}")
    return message["parts"]


def _check_part(part: object, index: int) -> Part:
    if not isinstance(part, Mapping):
        raise BadInput(f"part {index} of the message must be an object with a type, not {shown(part)}")
    given: Part = {}
    for key, value in cast(Mapping[object, Any], part).items():
        if not isinstance(key, str):
            raise BadInput(f"part {index} of the message has the key {shown(key)}; keys are strings")
        given[key] = value
    kind = given.get("type")
    if not isinstance(kind, str) or not (kind in _USER_PARTS or kind.removeprefix("data-") not in ("", kind)):
        raise BadInput(
            f"part {index} has the type {shown(kind)}; a user message takes {', '.join(_USER_PARTS)} or data-<name>"
        )
    needed = _REQUIRED_TEXT.get(kind)
    if needed is not None and not isinstance(given.get(needed), str):
        raise BadInput(f"part {index} ({kind}) needs a string in {needed!r}, not {shown(given.get(needed))}")
    for name in _OPTIONAL_TEXT if needed is not None else ():
        if not isinstance(given.get(name, ""), str):
            raise BadInput(f"part {index} ({kind}) has {shown(given[name])} in {name!r}; it must be a string")
    return given
