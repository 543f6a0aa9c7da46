"""Values from callers: whether they are what they should be, and how they are shown if they are not."""

from __future__ import annotations

import math
import reprlib
from typing import Final

from everturn.errors import BadInput

SHOWN_CHARACTERS: Final = 80
MAX_COUNT: Final = 2**31 - 1
"""What every database takes as a whole number."""


class _Short(reprlib.Repr):
    """Python's own abbreviations, and one for whole numbers that are too large to be written."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = self.maxlong = SHOWN_CHARACTERS

    def repr_int(self, x: int, level: int) -> str:
        """See base class."""
        return (
            super().repr_int(x, level)
            if x.bit_length() < 8 * SHOWN_CHARACTERS
            else f"a number of {x.bit_length()} bits"
        )


_short: Final = _Short()


def shown(value: object) -> str:
    """A value of any kind in at most 80 characters, however large, deep or broken it is."""
    text = _short.repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def said(error: BaseException) -> str:
    """What an exception says; "" if its class, which may be anybody's, cannot say it."""
    try:
        return str(error)
    except Exception:
        return ""


def check_text(value: object, what: str, max_bytes: int) -> str:
    """`value` if it is text that can be stored; raises BadInput naming `what` otherwise."""
    if not isinstance(value, str):
        raise BadInput(f"{what} must be a string, not {shown(value)}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise BadInput(
            f"{what} has text that is not valid Unicode: {error.reason} at character {error.start}"
        ) from error
    if "\x00" in value:
        raise BadInput(f"{what} contains the character U+0000, which databases refuse; remove it")
    if size > max_bytes:
        raise BadInput(f"{what} has {size:,} bytes; the limit is {max_bytes:,}")
    return value


def check_seconds(value: object, what: str) -> float:
    """`value` if it is a number of seconds, infinity included; raises BadInput naming `what` otherwise."""
    try:
        seconds = math.nan if not isinstance(value, int | float) or isinstance(value, bool) else float(value)
    except OverflowError:
        seconds = math.nan
    if math.isnan(seconds) or seconds == -math.inf:
        raise BadInput(f"{what} must be a number of seconds, not {shown(value)}")
    return seconds


def check_count(value: object, what: str, *, least: int = 0, most: int = MAX_COUNT) -> int:
    """`value` if it is a whole number in this range; raises BadInput naming `what` otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadInput(f"{what} must be a whole number from {least:,} to {most:,}, not {shown(value)}")
    return value
