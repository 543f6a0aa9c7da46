"""What a client remembers of its own submissions."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

REMEMBERED: Final = 10_000
"""Threads, and requests; what is forgotten is looked up, or orders itself by time."""


class Submissions:
    """The last request of each thread, to keep a client's own submissions in order; and all requests, which it need not
    look up in order to follow them."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, str] = OrderedDict()
        self._requests: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._requests

    def before(self, thread_id: str, request_id: str) -> str | None:
        """The request that this client submitted on the thread before this one."""
        last = self._last.get(thread_id)
        return last if last != request_id else None

    def add(self, thread_id: str, request_id: str) -> None:
        self._last[thread_id] = request_id
        self._last.move_to_end(thread_id)
        self._requests[request_id] = None
        for known in (self._last, self._requests):
            if len(known) > REMEMBERED:
                known.popitem(last=False)
