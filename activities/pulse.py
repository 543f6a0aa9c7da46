"""The heartbeats of activities, from their start to their end: also one that waits for the store is alive, and
must not be started again elsewhere. Somebody else has to beat for them when the event loop is stuck.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Final

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

HEARTBEAT_EVERY: Final = 0.7
"""Seconds: so often that a network may be lost for three without a miss. A cancel that comes by way of Temporal arrives
with the answer to a heartbeat."""


class Pulse:
    """The task tokens of the activities that beat; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: set[bytes] = set()

    @property
    def tokens(self) -> list[bytes]:
        with self._lock:
            return list(self._tokens)

    def begin(self, token: bytes) -> None:
        with self._lock:
            self._tokens.add(token)

    def end(self, token: bytes) -> None:
        with self._lock:
            self._tokens.discard(token)


class PulseInterceptor(Interceptor):
    """Beats for every activity with a heartbeat timeout, and keeps the worker's pulse."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """See base class."""
        return _Felt(next, self._pulse)


class _Felt(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, pulse: Pulse) -> None:
        super().__init__(inner)
        self._pulse = pulse

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the name in the base class
        """See base class."""
        info = activity.info()
        if info.is_local or info.heartbeat_timeout is None:
            return await super().execute_activity(input)
        self._pulse.begin(info.task_token)
        beating = asyncio.ensure_future(_beat())
        try:
            return await super().execute_activity(input)
        finally:
            beating.cancel()
            self._pulse.end(info.task_token)


async def _beat() -> None:
    while True:  # the start itself counts as a beat: short activities cost no call for one
        await asyncio.sleep(HEARTBEAT_EVERY)
        activity.heartbeat()
