"""Watches from a thread that the worker's event loop turns.

Author's code that blocks (a `time.sleep` or a synchronous client in an `async def`) stops everything that the worker
does. Its other turns are late then, but not lost: while the loop is stuck, the thread beats for their activities, which
Temporal would otherwise take for dead after five seconds and start again.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from types import FrameType
from typing import Final

from temporalio.bridge.proto import ActivityHeartbeat
from temporalio.worker import Worker

from everturn.activities.events import LOOP_STALLED, emit
from everturn.activities.pulse import Pulse

LOOK_EVERY: Final = 0.1
STALL_AFTER: Final = 0.2
"""Seconds for which a loop may be busy with one thing; people notice a stream that stops for longer."""
BEAT_EVERY: Final = 1.0
PATIENCE: Final = 60.0
"""Seconds after which nobody beats any more for a loop that is stuck: its work then goes on in another worker."""
FRAMES: Final = 8

logger = logging.getLogger("everturn.worker")


class LoopWatch:
    """Made and started in the loop that it watches. stalls, longest_ms: how often and how long the loop stood still."""

    def __init__(self, worker: Worker, pulse: Pulse) -> None:
        self._worker, self._pulse = worker, pulse
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="everturn-loop-watch", daemon=True)
        self.stalls = 0
        self.longest_ms = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns at once; the thread ends within its next look."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY):
            turned = threading.Event()
            asked = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(turned.set)
            except RuntimeError:  # the loop is closed: there is nothing to watch any more
                return
            if not turned.wait(STALL_AFTER):
                self._stalled(turned, asked)

    def _stalled(self, turned: threading.Event, asked: float) -> None:
        self.stalls += 1
        stack = self._stack()
        given_up = False
        while not turned.is_set() and not self._stopping.is_set():
            if time.monotonic() - asked < PATIENCE:
                self._beat()
            elif not given_up:
                given_up = True
                emit(LOOP_STALLED, ms=_ms_since(asked), over=False, stack=self._stack())
            turned.wait(BEAT_EVERY)
        if not self._stopping.is_set():
            ms = _ms_since(asked)
            self.longest_ms = max(self.longest_ms, ms)
            emit(LOOP_STALLED, ms=ms, over=True, stack=stack)

    def _beat(self) -> None:
        # The SDK's own way to beat goes through the loop; what stands behind it may be called from any thread.
        bridge = self._worker._bridge_worker  # pyright: ignore[reportPrivateUsage]
        for token in self._pulse.tokens:
            try:
                bridge.record_activity_heartbeat(ActivityHeartbeat(task_token=token))
            except RuntimeError:  # the activity has ended meanwhile
                logger.debug("an activity that is over was not beaten for", exc_info=True)

    def _stack(self) -> list[str]:
        """Where the loop's thread is, innermost last."""
        frame: FrameType | None = sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage]
        lines: list[str] = []
        while frame is not None and len(lines) < FRAMES:
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}")
            frame = frame.f_back
        return lines[::-1]


def _ms_since(then: float) -> int:
    return round((time.monotonic() - then) * 1000)
