"""Group commit: the waiting events of all writers of a process go into one transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection

from everturn.errors import EverturnError, StoreUnavailable
from everturn.store.columns import now
from everturn.store.events import PreparedBatch, append_batches
from everturn.store.transactions import Transactions
from everturn.store.writer import StreamWriter

_log: Final = logging.getLogger(__name__)


class GroupWrite:
    """One group of batches as a transaction that knows whether it is run again.

    must_exist: a batch of an unknown turn raises TurnNotFound instead of counting as fenced.
    """

    def __init__(self, batches: list[PreparedBatch], *, must_exist: bool = False) -> None:
        self._batches = batches
        self._must_exist = must_exist
        self._written_at: datetime = now()
        self._tried = False

    def __call__(self, connection: Connection) -> list[bool]:
        again, self._tried = self._tried, True
        return append_batches(connection, self._batches, self._written_at, again=again, must_exist=self._must_exist)


SOONEST: Final = 0.01
"""Seconds that events wait for others at least, unless they are urgent."""
REST: Final = 5
"""A busy store is left alone for so many times as long as the last group took."""


class GroupCommit:
    """The one flusher of a store, and at once for urgent events.

    Events wait for each other: 10 ms where groups are written fast, up to `interval` seconds where there is much to
    write, so that one stream is shown without delay and a hundred share their commits.
    """

    def __init__(self, transactions: Transactions, interval: float, committed: Callable[[Iterable[str]], None]) -> None:
        self.store = transactions.address.safe
        self._transactions = transactions
        self._interval = interval
        self._pause = min(SOONEST, interval)
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._waiting: dict[StreamWriter, None] = {}
        self._filled, self._urgent = asyncio.Event(), asyncio.Event()
        self._round: asyncio.Future[None] = self._loop.create_future()
        self._closed = False
        self._task = self._loop.create_task(self._run(), name="everturn-store-flush")

    def wake(self, writer: StreamWriter, *, urgent: bool) -> None:
        """Notes that `writer` has events; from any thread."""
        with self._lock:
            known = writer in self._waiting
            self._waiting[writer] = None
            closed = self._closed
        if closed:
            writer.lost(StoreUnavailable(self.store, "it was closed", "open it again"))
        elif urgent or not known:
            self._signal(urgent=urgent)

    def round_done(self) -> asyncio.Future[None]:
        """Is done when the round that is under way, or else the next one, has ended."""
        return asyncio.shield(self._round)

    async def close(self) -> None:
        """Writes what waits, then stops."""
        with self._lock:
            self._closed = True
        self._set(urgent=True)
        await self._task

    def _signal(self, *, urgent: bool) -> None:
        if threading.get_ident() == self._thread:
            self._set(urgent=urgent)
        else:
            self._loop.call_soon_threadsafe(partial(self._set, urgent=urgent))

    def _set(self, *, urgent: bool) -> None:
        self._filled.set()
        if urgent:
            self._urgent.set()

    async def _run(self) -> None:
        while not self._closed:
            await self._filled.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._urgent.wait()
            self._filled.clear()
            self._urgent.clear()
            begun = self._loop.time()
            await self._flush()
            self._pause = min(self._interval, max(SOONEST, REST * (self._loop.time() - begun)))

    async def _flush(self) -> None:
        with self._lock:
            writers, self._waiting = list(self._waiting), {}
        taken = [(writer, batch) for writer in writers if (batch := writer.take()) is not None]
        try:
            await self._write(taken)
        finally:
            done, self._round = self._round, self._loop.create_future()
            done.set_result(None)

    async def _write(self, taken: list[tuple[StreamWriter, PreparedBatch]]) -> None:
        if not taken:
            return
        try:
            accepted = await self._transactions.write(GroupWrite([batch for _, batch in taken]))
        except EverturnError as error:
            for writer, _ in taken:
                writer.lost(error)
            return
        except Exception as error:
            _log.exception("stream events could not be written")
            for writer, _ in taken:
                writer.lost(StoreUnavailable(self.store, f"a write failed: {type(error).__name__}", "see the log"))
            return
        for (writer, _), ok in zip(taken, accepted, strict=True):
            writer.written(ok)
        self._committed({writer.request_id for writer, _ in taken})
