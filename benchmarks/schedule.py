"""In which order contenders are measured, and for how long."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def rotated(items: Sequence[T], round_: int) -> list[T]:
    """The items, beginning one further each round, so that none always follows the same other one's first place."""
    start = round_ % len(items) if items else 0
    return [*items[start:], *items[:start]]


class Budget:
    """Rounds until the count or the time is used up, but always one."""

    def __init__(self, rounds: int, seconds: float) -> None:
        self._rounds, self._ends = rounds, time.monotonic() + seconds

    def rounds(self) -> Iterator[int]:
        longest = 0.0
        for number in range(self._rounds):
            began = time.monotonic()
            if number and began + longest > self._ends:
                return
            yield number
            longest = max(longest, time.monotonic() - began)
