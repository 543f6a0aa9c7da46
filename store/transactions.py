"""Transactions: each is one function on a connection, run in one hop to a bounded pool of threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine, exc

from everturn.errors import EverturnError, StoreUnavailable
from everturn.store.address import Address
from everturn.store.driver import DriverConnection, PostgresConnection, SqliteConnection
from everturn.store.engines import PG_THREADS, READERS, postgres_engine, sqlite_engine
from everturn.store.faults import is_transient, refused, unavailable

PATIENCE: Final = 15.0
"""Seconds that the work of a running turn waits for a store that is locked or down, before the turn fails."""
_BUSY_HINT: Final = "raise EVERTURN_STORE_CONNECTIONS (SQLite: only of reads), add workers, or find what is slow"
_FIRST_DELAY: Final = 0.05
_LAST_DELAY: Final = 1.0

T = TypeVar("T")


class Transactions:
    """The connections and threads of one store in this process.

    SQLite has one writer thread, as its file has one write lock; PostgreSQL runs reads and writes on the same threads.
    Each thread has a connection; both are made when they are first needed. connections: how many at most, None for the
    database's default (on SQLite: of readers).
    """

    def __init__(self, address: Address, timeout: float, connections: int | None = None) -> None:
        self.address = address
        self._closed = False
        self._trouble: exc.SQLAlchemyError | None = None  # of the last try, whoever made it
        self._kept = threading.local()
        self._connections: list[DriverConnection] = []
        if address.is_sqlite:
            readers = connections or READERS
            self._write_engine = sqlite_engine(address, write=True, timeout=timeout)
            self.read_engine = sqlite_engine(address, write=False, timeout=timeout, readers=readers)
            self._writers = ThreadPoolExecutor(1, "everturn-store-write")
            self._readers = ThreadPoolExecutor(readers, "everturn-store-read")
        else:
            threads = connections or PG_THREADS
            self._write_engine = postgres_engine(address, timeout=timeout, connections=threads)
            self.read_engine = self._write_engine
            self._writers = self._readers = ThreadPoolExecutor(threads, "everturn-store")

    async def write(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """Runs `work` in a transaction that is committed when it returns; transient trouble runs it again.

        `work` must therefore be idempotent. Raises StoreUnavailable after `patience` seconds of trouble.
        """
        return await self._run(self._writers, partial(self._written, work), patience)

    async def read(self, work: Callable[[Connection], T], *, patience: float = PATIENCE) -> T:
        """Runs `work`, which only reads; otherwise as `write`."""
        return await self._run(self._readers, partial(self._read, work), patience)

    async def close(self) -> None:
        """Lets running transactions end, then closes all connections."""
        self._closed = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._shutdown)

    def _shutdown(self) -> None:
        for pool in (self._writers, self._readers):
            pool.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
        for engine in (self.read_engine, self._write_engine):
            engine.dispose()

    def _written(self, work: Callable[[Connection], T]) -> T:
        return self._transacted(self._write_engine, work, write=True)

    def _read(self, work: Callable[[Connection], T]) -> T:
        return self._transacted(self.read_engine, work, write=False)

    def _transacted(self, engine: Engine, work: Callable[[Connection], T], *, write: bool) -> T:
        """On this thread's connection, which is kept until a statement fails on it. One that was cut while it was not
        in use is replaced at once."""
        was_kept = self._connection() is not None
        try:
            return self._try(engine, work, write=write)
        except exc.DBAPIError as error:
            if not (was_kept and error.connection_invalidated):
                raise
        return self._try(engine, work, write=write)

    def _try(self, engine: Engine, work: Callable[[Connection], T], *, write: bool) -> T:
        connection = self._connection()
        if connection is None:
            kind = SqliteConnection if self.address.is_sqlite else PostgresConnection
            connection = self._kept.connection = kind(engine)
            self._connections.append(connection)
        try:
            with connection.transaction(write=write):
                return work(connection)
        except exc.DBAPIError:
            self._kept.connection = None
            self._connections.remove(connection)
            connection.close()
            raise

    def _connection(self) -> DriverConnection | None:
        return getattr(self._kept, "connection", None)

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[[], T], patience: float) -> T:
        deadline = time.monotonic() + patience
        delay = _FIRST_DELAY
        while True:
            if self._closed:
                raise StoreUnavailable(self.address.safe, "it was closed", "open it again")
            try:
                result = await self._in_thread(pool, work, deadline)
            except exc.SQLAlchemyError as error:
                if not is_transient(error) or time.monotonic() + delay > deadline:
                    raise self._translated(error) from error
                self._trouble = error
            else:
                self._trouble = None
                return result
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LAST_DELAY)

    async def _in_thread(self, pool: ThreadPoolExecutor, work: Callable[[], T], deadline: float) -> T:
        """Raises StoreUnavailable if no thread is free before the deadline; work that has begun is waited for."""
        loop = asyncio.get_running_loop()
        begun = time.monotonic()
        running = pool.submit(work)
        expired = False

        def expire() -> None:
            nonlocal expired
            expired = running.cancel()

        timer = loop.call_later(max(0.0, deadline - begun), expire)
        try:
            return await asyncio.wrap_future(running, loop=loop)
        except asyncio.CancelledError:
            if not expired:
                raise
            if self._trouble is not None:  # why the threads are busy
                raise self._translated(self._trouble) from None
            reason = f"its connections were all busy for {time.monotonic() - begun:.1f} s"
            raise StoreUnavailable(self.address.safe, reason, _BUSY_HINT) from None
        finally:
            timer.cancel()

    def _translated(self, error: exc.SQLAlchemyError) -> Exception:
        if isinstance(error, exc.StatementError) and isinstance(error.orig, EverturnError):
            return error.orig
        return unavailable(self.address, error) or refused(self.address, error) or error
