"""The seam by which a worker process kills itself at a chosen place: told by an environment variable, tests only."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from dataclasses import asdict, dataclass
from typing import Literal

VARIABLE = "CHAOS_FAULT"
When = Literal["before", "after", "inside"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Kill -9 at the `nth` visit of a place. delay: seconds spent in the place before that.

    place: `commit:<work of the store>`, `activity:<name>`, `tool:<name>` or `hook:<point>`. when: for a commit,
    `before` is inside its transaction, with everything written.
    """

    place: str
    when: When
    nth: int = 1
    delay: float = 0.0

    def environment(self) -> dict[str, str]:
        """How a worker process is told."""
        return {VARIABLE: json.dumps(asdict(self))}


class Striker:
    """Counts the visits of this process's fault at the places of one seam. Without a fault, every visit is free."""

    def __init__(self) -> None:
        told = os.environ.get(VARIABLE)
        self._fault = Fault(**json.loads(told)) if told else None
        self._visits = 0
        self._lock = threading.Lock()

    def visit(self, place: str, when: When) -> None:
        """From a thread that may be held up; does not return from the visit that is struck."""
        if self._due(place, when):
            time.sleep(self._delay)
            _die()

    async def visit_in_loop(self, place: str, when: When) -> None:
        """The same on the event loop: everything else goes on during the delay."""
        if self._due(place, when):
            await asyncio.sleep(self._delay)
            _die()

    @property
    def _delay(self) -> float:
        return self._fault.delay if self._fault else 0.0

    def _due(self, place: str, when: When) -> bool:
        if self._fault is None or (place, when) != (self._fault.place, self._fault.when):
            return False
        with self._lock:
            self._visits += 1
            return self._visits == self._fault.nth


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
