"""The tail hub: one thread that reads for all tails and waiters of a process."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Engine, exc

from everturn.chunks import Chunk
from everturn.errors import EverturnError, StoreUnavailable
from everturn.store.address import Address
from everturn.store.bell import Bell
from everturn.store.faults import is_transient, reason_of
from everturn.store.tailing import WINDOW, news, over
from everturn.store.transactions import PATIENCE
from everturn.store.watch import PostgresWatch, SqliteWatch, Watch

_BUFFER: Final = 2 * WINDOW
"""Chunks that may wait for a slow reader before the hub stops reading for it."""
_RETRY_DELAY: Final = 0.25
_log: Final = logging.getLogger(__name__)


class Subscription:
    """A reader's place in a turn's stream. Filled by the hub's thread, emptied on the reader's event loop.

    ends_only: the reader wants no chunks, only to know when the turn is over.
    """

    def __init__(self, key: int, request_id: str, after: int, *, ends_only: bool) -> None:
        self.key, self.request_id, self.position, self.ends_only = key, request_id, after, ends_only
        self.starved = False  # the hub has chunks that it may not deliver before the reader takes some
        self.delivered = 0  # written by the hub's thread only
        self.taken = 0  # written by the reader only
        self.loop = asyncio.get_running_loop()
        self._chunks: deque[Chunk] = deque()
        self._news = asyncio.Event()
        self._error: EverturnError | None = None

    def has_room(self) -> bool:
        """For the hub's thread."""
        # Marked before the look: a reader that takes chunks meanwhile sees the mark and wakes the hub.
        self.starved = True
        self.starved = not self.delivered - self.taken < _BUFFER
        return not self.starved

    async def next(self, limit: float) -> list[Chunk]:
        """The chunks that have come; raises TimeoutError after `limit` seconds without any, and the hub's error."""
        async with asyncio.timeout(limit):
            await self._news.wait()
        self._news.clear()
        if self._error is not None:
            raise self._error
        chunks = list(self._chunks)
        self._chunks.clear()
        self.taken += len(chunks)
        return chunks

    def sent(self, chunks: list[Chunk]) -> None:
        """For the hub's thread: the chunks are on their way."""
        if chunks:
            self.position = chunks[-1].seq
        self.delivered += len(chunks)

    def receive(self, chunks: list[Chunk], error: EverturnError | None = None) -> None:
        """On the reader's loop."""
        self._chunks.extend(chunks)
        self._error = error or self._error
        self._news.set()


def _deliver(news: Iterable[tuple[Subscription, list[Chunk]]], error: EverturnError | None = None) -> None:
    """From the hub's thread, with one wake-up of each event loop, which costs more than all the rest."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Subscription, list[Chunk]]]] = {}
    for subscription, chunks in news:
        subscription.sent(chunks)
        by_loop.setdefault(subscription.loop, []).append((subscription, chunks))
    for loop, given in by_loop.items():
        try:
            loop.call_soon_threadsafe(_receive, given, error)
        except RuntimeError:
            # The readers' loop is closed: nobody is left to read, and their tails can no longer unsubscribe.
            _log.debug("%d readers are gone", len(given))


def _receive(news: list[tuple[Subscription, list[Chunk]]], error: EverturnError | None) -> None:
    for subscription, chunks in news:
        subscription.receive(chunks, error)


class Hub:
    """Serves every tail and every wait of a store in this process; its thread starts with the first of them."""

    def __init__(self, address: Address, engine: Engine) -> None:
        self._address = address
        self._keys = itertools.count(1)
        self._subscriptions: dict[int, Subscription] = {}
        self._turns = Counter[str]()
        self._changed: set[str] | None = None  # None: any turn may have changed
        self._lock = threading.Lock()
        self._bell = Bell()
        self._woken = False
        self._closed = False
        self._failing_since: float | None = None
        self._took = 0.0  # seconds of the last look
        self._thread: threading.Thread | None = None
        self._watch: Watch = (
            PostgresWatch(engine, self._heard) if address.path is None else SqliteWatch(engine, address.path)
        )

    def subscribe(self, request_id: str, after: int = 0, *, ends_only: bool = False) -> Subscription:
        """Starts to read for a tail or a wait."""
        subscription = Subscription(next(self._keys), request_id, after, ends_only=ends_only)
        with self._lock:
            if self._closed:
                raise StoreUnavailable(self._address.safe, "it was closed", "open it again")
            self._subscriptions[subscription.key] = subscription
            self._turns[request_id] += 1
            if self._thread is None:
                self._watch.start()
                self._thread = threading.Thread(target=self._run, name="everturn-store-tail", daemon=True)
                self._thread.start()
            self._note({request_id})
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        with self._lock:
            if self._subscriptions.pop(subscription.key, None) is not None:
                self._turns[subscription.request_id] -= 1
                if not self._turns[subscription.request_id]:
                    del self._turns[subscription.request_id]

    def wake(self, request_ids: Iterable[str]) -> None:
        """This process has committed news of these turns, or a reader has room again."""
        changed = set(request_ids)
        with self._lock:
            if self._subscriptions and changed:
                self._note(changed)

    def close(self) -> None:
        """Ends the thread; tails that are still open fail."""
        with self._lock:
            self._closed = True
        self._bell.ring()
        if self._thread is not None:
            self._thread.join()
        self._fail_all(StoreUnavailable(self._address.safe, "it was closed", "open it again"))
        self._watch.close()
        self._bell.close()

    def _heard(self, request_id: str | None) -> None:
        """From the listener: a turn has news; None: some may have."""
        with self._lock:
            if request_id is None:
                self._note(None)
            elif request_id in self._turns:
                self._note({request_id})

    def _note(self, request_ids: set[str] | None) -> None:
        if request_ids is None:
            self._changed = None
        elif self._changed is not None:
            self._changed |= request_ids
        self._woken = True
        self._bell.ring()

    def _run(self) -> None:
        while self._wait():
            began = time.monotonic()
            try:
                self._look()
                self._failing_since = None
                self._took = time.monotonic() - began
            except exc.SQLAlchemyError as error:
                self._failed(error)
            except Exception as error:
                _log.exception("the stream tail failed")
                self._fail_all(StoreUnavailable(self._address.safe, f"reading failed: {type(error).__name__}"))

    def _wait(self) -> bool:
        """Waits for the next look; False when the hub is closed."""
        while not (self._subscriptions or self._closed):
            self._bell.wait(None)
        if self._failing_since is not None:
            self._sleep(_RETRY_DELAY)
            return not self._closed
        self._sleep(self._watch.rest(self._took))
        until = time.monotonic() + self._watch.interval
        while not (self._woken or self._closed) and (left := until - time.monotonic()) > 0:
            if self._bell.wait(left, self._watch.descriptor):
                break
        return not self._closed

    def _sleep(self, seconds: float) -> None:
        """Nothing but the end of the hub ends this sleep."""
        until = time.monotonic() + seconds
        while not self._closed and (left := until - time.monotonic()) > 0:
            self._bell.wait(left)

    def _look(self) -> None:
        with self._lock:
            woken, self._woken = self._woken, False
            # On SQLite, and when the safety interval passed without news, all are looked at.
            changed = self._changed if woken and not self._address.is_sqlite else None
            self._changed = set()
            chosen = {
                key: subscription
                for key, subscription in self._subscriptions.items()
                if changed is None or subscription.request_id in changed
            }
        try:
            if self._watch.look(woken=woken) and chosen:
                self._read(chosen)
        except BaseException:
            with self._lock:  # what was to be looked at still is
                self._changed, self._woken = None, True
            raise

    def _read(self, chosen: dict[int, Subscription]) -> None:
        tails = {key: (s.request_id, s.position) for key, s in chosen.items() if not s.ends_only and s.has_room()}
        waiters = [s for s in chosen.values() if s.ends_only]
        with self._watch.reading() as connection:
            found = news(connection, tails) if tails else {}
            ended = over(connection, {s.request_id for s in waiters}) if waiters else set[str]()
        _deliver(
            [(chosen[key], chunks) for key, chunks in found.items()]
            + [(waiter, []) for waiter in waiters if waiter.request_id in ended]
        )
        self.wake({chosen[key].request_id for key, chunks in found.items() if len(chunks) == WINDOW})

    def _failed(self, error: exc.SQLAlchemyError) -> None:
        self._failing_since = self._failing_since or time.monotonic()
        if is_transient(error) and time.monotonic() - self._failing_since < PATIENCE:
            return
        cause = error.orig if isinstance(error, exc.DBAPIError) else error
        self._fail_all(StoreUnavailable(self._address.safe, reason_of(self._address, cause)))

    def _fail_all(self, error: EverturnError) -> None:
        with self._lock:
            subscriptions = list(self._subscriptions.values())
            self._subscriptions.clear()
            self._turns.clear()
        _deliver([(subscription, []) for subscription in subscriptions], error)
