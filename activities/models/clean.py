"""What providers send, as the store takes it: text without U+0000 and halves of surrogate pairs, numbers and fields
that can be what they are said to be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from everturn.errors import BadInput
from everturn.messages import dump_json
from everturn.turns import JsonDict

MAX_TOKENS: Final = 100_000_000
"""More than any call can use; a count above it is no count."""

_HIGH = range(0xD800, 0xDC00)


def clean(text: str) -> str:
    """`text` without U+0000 and with each lone surrogate replaced by U+FFFD; whole pairs become their character."""
    text = text.replace("\x00", "")
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def token_count(value: object) -> int:
    """A number of tokens; 0 for what cannot be one."""
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS
    return cast(int, value) if usable else 0


def price(value: object) -> float | None:
    """US dollars; None for what cannot be a price."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MAX_TOKENS:
        return None
    return float(value)


def storable(fields: JsonDict | None) -> JsonDict | None:
    """Fields that a provider added, if they have a JSON form that can be kept and sent back; None otherwise."""
    if not fields:
        return None
    try:
        dump_json(fields, "the provider's fields")
    except BadInput:
        return None
    return fields


def thinking_fragments(blocks: Iterable[Any]) -> list[JsonDict]:
    """Fragments of signed reasoning: objects of texts and numbers, whatever else a server may have put there."""
    objects = (cast(JsonDict, block) for block in blocks if isinstance(block, dict))
    found = [{name: value for name, value in block.items() if isinstance(value, str | int)} for block in objects]
    return [block for block in found if all(isinstance(block.get(name, ""), str) for name in _BLOCK_TEXTS)]


_BLOCK_TEXTS: Final = ("type", "thinking", "signature", "data")


class Cleaner:
    """Cleans a text that arrives in pieces: a server may cut between the two halves of a surrogate pair."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        text = self._held + piece
        self._held = text[-1] if text and ord(text[-1]) in _HIGH else ""
        return clean(text[:-1] if self._held else text)

    def rest(self) -> str:
        """What is left at the end of the text: a replacement character if half a pair was."""
        held, self._held = self._held, ""
        return clean(held)
