"""What the model server saw and when it wrote each token."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from typing import Any, Final

_TURNS: Final = 5_000  # bounds the memory of a long comparison


@dataclass(slots=True)
class Asked:
    """One request. step: tool results that it came with. Times are seconds since the epoch."""

    step: int
    bytes_in: int
    at: float = field(default_factory=time.time)
    written: list[float] = field(default_factory=list[float])
    """When each token of the answer was written."""
    done: float | None = None
    """When the answer was complete; None while it runs, or if the caller went away."""


class Seen:
    """The requests of the last turns."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, list[Asked]] = OrderedDict()

    def note(self, turn: str, step: int, bytes_in: int) -> Asked:
        asked = Asked(step, bytes_in)
        self._turns.setdefault(turn, []).append(asked)
        if len(self._turns) > _TURNS:
            self._turns.popitem(last=False)
        return asked

    def of(self, turn: str) -> list[dict[str, Any]]:
        """The requests of a turn, oldest first."""
        return [asdict(asked) for asked in self._turns.get(turn, [])]
