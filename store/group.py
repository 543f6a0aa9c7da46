"""Group commit: the waiting events of all writers of a process go into one transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Literal

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
"""Seconds between two groups at least, unless events are urgent."""
REST: Final = 3
"""A busy store is left alone for so many times as long as the last group took."""

Haste = Literal["now", "soon", "later"]
"""now: at once. soon: as soon as the store has rested. later: shows nothing by itself, so others may come first."""


class GroupCommit:
    """The one flusher of a store.

    Between two groups the store rests: 10 ms where groups are written fast, up to `interval` seconds where there is
    much to write. So the tokens of one slow stream are each written as they come, and a hundred streams share their
    commits.
    """

    def __init__(self, transactions: Transactions, interval: float, committed: Callable[[Iterable[str]], None]) -> None:
        self.store = transactions.address.safe
        self._transactions = transactions
        self._interval = interval
        self._pause = min(SOONEST, interval)
        self._rested = 0.0  # from then on, by the loop's clock
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._waiting: dict[StreamWriter, Haste] = {}
        self._filled, self._shown, self._urgent = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._round: asyncio.Future[None] = self._loop.create_future()
        self._closed = False
        self._task = self._loop.create_task(self._run(), name="everturn-store-flush")

    def wake(self, writer: StreamWriter, haste: Haste) -> None:
        """Notes that `writer` has events; from any thread."""
        with self._lock:
            known = self._waiting.get(writer) == haste
            self._waiting[writer] = haste
            closed = self._closed
        if closed:
            writer.lost(StoreUnavailable(self.store, "it was closed", "open it again"))
        elif known:
            return
        elif threading.get_ident() == self._thread:
            self._set(haste)
        else:
            self._loop.call_soon_threadsafe(self._set, haste)

    def round_done(self) -> asyncio.Future[None]:
        """Is done when the round that is under way, or else the next one, has ended."""
        return asyncio.shield(self._round)

    async def close(self) -> None:
        """Writes what waits, then stops."""
        with self._lock:
            self._closed = True
        self._set("now")
        await self._task

    def _set(self, haste: Haste) -> None:
        self._filled.set()
        if haste != "later":
            self._shown.set()
        if haste == "now":
            self._urgent.set()

    async def _run(self) -> None:
        while not self._closed:
            await self._filled.wait()
            if not self._shown.is_set():
                await _set_within(self._shown, self._pause)
            await _set_within(self._urgent, self._rested - self._loop.time())
            for event in (self._filled, self._shown, self._urgent):
                event.clear()
            begun = self._loop.time()
            await self._flush()
            ended = self._loop.time()
            self._pause = min(self._interval, max(SOONEST, REST * (ended - begun)))
            self._rested = ended + self._pause

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


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    """Waits for the event, at most so long."""
    if seconds <= 0 or event.is_set():
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
