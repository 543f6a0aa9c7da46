"""Text as the store takes it: no U+0000, no half of a surrogate pair."""

from __future__ import annotations

_HIGH = range(0xD800, 0xDC00)


def clean(text: str) -> str:
    """`text` without U+0000 and with each lone surrogate replaced by U+FFFD; whole pairs become their character."""
    text = text.replace("\x00", "")
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
