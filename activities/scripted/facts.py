"""What a sentence plainly states: quoted strings, numbers, names, addresses, dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"https?://[^\s\"'<>]+")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w'’-]*"
_PLACE = re.compile(rf"\b(?:in|at|for|from|to|near|of|about)\s+({_CAPITAL}(?:\s+{_CAPITAL})*)")
_NAME = re.compile(rf"(?<![.!?]\s)(?<!^)\b({_CAPITAL}(?:\s+{_CAPITAL})*)")
_ID = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{2,}\b|#\w+")


@dataclass(frozen=True)
class Facts:
    """The facts of one text, each list in the text's order."""

    text: str

    @cached_property
    def quoted(self) -> list[str]:
        return [next(group for group in found if group) for found in _QUOTED.findall(self.text)]

    @cached_property
    def numbers(self) -> list[float]:
        return [float(found) for found in _NUMBER.findall(_DATE.sub(" ", self.text))]

    @cached_property
    def emails(self) -> list[str]:
        return _EMAIL.findall(self.text)

    @cached_property
    def urls(self) -> list[str]:
        return [url.rstrip(".,;:!?)") for url in _URL.findall(self.text)]

    @cached_property
    def dates(self) -> list[str]:
        return _DATE.findall(self.text)

    @cached_property
    def names(self) -> list[str]:
        """Capitalised names: first those after a preposition, then others; never a sentence's first word."""
        found = [*_PLACE.findall(self.text), *_NAME.findall(self.text)]
        return list(dict.fromkeys(name for name in found if name != "I"))

    @cached_property
    def ids(self) -> list[str]:
        """Words that mix letters and digits, or begin with `#`: order numbers and the like."""
        return [found.lstrip("#") for found in _ID.findall(self.text)]

    def mentions(self, word: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(word.lower())}(?!\w)", self.text.lower()) is not None
