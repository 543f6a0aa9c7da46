"""A flag that tells tools and hooks, on the loop or in a thread, that their turn is being cancelled."""

from __future__ import annotations

import asyncio
import threading


class CancelFlag:
    """Set once, never cleared. Created on the event loop; safe to read from any thread."""

    def __init__(self) -> None:
        self._thread_event = threading.Event()
        self._event = asyncio.Event()

    def set(self) -> None:
        """To be called on the event loop."""
        self._thread_event.set()
        self._event.set()

    def is_set(self) -> bool:
        return self._thread_event.is_set()

    async def wait(self) -> None:
        """Returns when the turn is cancelled; for code on the event loop."""
        await self._event.wait()

    def wait_in_thread(self, seconds: float) -> bool:
        """Waits up to `seconds` in a thread; True if the turn is cancelled."""
        return self._thread_event.wait(seconds)
