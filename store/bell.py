"""What a thread sleeps on until it is called, or until the system tells of a change."""

from __future__ import annotations

import contextlib
import selectors
import socket
from typing import Final

_CHUNK: Final = 4096


class Bell:
    """One thread waits, any thread rings. A ring between two waits ends the next one at once."""

    def __init__(self) -> None:
        self._rope, self._clapper = socket.socketpair()
        for end in (self._rope, self._clapper):
            end.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._clapper, selectors.EVENT_READ)
        self._also: int | None = None

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full of rings already
            self._rope.send(b"!")

    def wait(self, limit: float | None, also: int | None = None) -> bool:
        """Sleeps until a ring, or for `limit` seconds. also: a descriptor that ends the sleep too, when it is readable:
        True then."""
        self._listen_also(also)
        ready = [key.fd for key, _ in self._selector.select(limit)]
        if self._clapper.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._clapper.recv(_CHUNK)
        return also is not None and also in ready

    def close(self) -> None:
        self._selector.close()
        self._rope.close()
        self._clapper.close()

    def _listen_also(self, also: int | None) -> None:
        if also == self._also:
            return
        if self._also is not None:
            self._selector.unregister(self._also)
        if also is not None:
            self._selector.register(also, selectors.EVENT_READ)
        self._also = also
