"""How the tail learns of news: SQLite by looking, PostgreSQL by being told."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, cast

import psycopg
from sqlalchemy import Connection, Engine, exc

from everturn.store.driver import PostgresConnection, SqliteConnection
from everturn.store.events import CHANNEL
from everturn.store.inotify import FileChanges

FAST: Final = 0.005
SLOW: Final = 0.05
REST: Final = 0.002
SHARE: Final = 4
"""After a look SQLite is left alone for two milliseconds, or four times as long as the look took, up to SLOW: commits
that come meanwhile are shown together."""
SAFETY: Final = 1.0
"""Seconds between looks on PostgreSQL when no notification comes: covers one that was lost."""
_GROWTH: Final = 1.5
_LISTEN: Final = 0.25  # how long the listener waits before it checks whether it should stop
_FIRST_DELAY: Final = 0.1
_LAST_DELAY: Final = 2.0


class Watch(Protocol):
    """Tells the tail's thread when to query."""

    interval: float
    """Seconds until the next look."""

    def rest(self, took: float) -> float:
        """Seconds in which there is no other look after one of `took` seconds."""
        ...

    @property
    def descriptor(self) -> int | None:
        """Is readable when it is time for the next look, if the system can tell."""
        ...

    def start(self) -> None: ...

    def look(self, *, woken: bool) -> bool:
        """True if there may be news. May raise SQLAlchemyError."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection to read the news with, for the tail's thread. May raise SQLAlchemyError."""
        ...

    def close(self) -> None: ...


class SqliteWatch:
    """Asks SQLite for `data_version`, a number that changes with every commit of any process; costs microseconds.

    It asks when the kernel tells of a write to the log of commits, and from time to time: not every system tells, and
    not of every file system.
    """

    def __init__(self, engine: Engine, path: Path) -> None:
        self.interval = FAST
        self._engine = engine
        self._log_path = path.with_name(f"{path.name}-wal")
        self._log: FileChanges | None = None
        self._connection: SqliteConnection | None = None
        self._version = -1

    @property
    def descriptor(self) -> int | None:
        return self._log.descriptor if self._log else None

    def start(self) -> None:
        """Nothing to start: the connection is opened by the first look."""

    def rest(self, took: float) -> float:
        return min(max(REST, SHARE * took), SLOW)

    def look(self, *, woken: bool) -> bool:
        if self._log is not None:
            self._log.forget()
        try:
            version = self._data_version()
        except sqlite3.Error as error:
            self.close()
            raise exc.OperationalError("PRAGMA data_version", None, error) from error
        changed = version != self._version or woken
        self._version = version
        self.interval = FAST if changed else min(self.interval * _GROWTH, SLOW)
        return changed

    @contextmanager
    def reading(self) -> Generator[Connection]:
        connection = self._opened()
        try:
            yield connection
            connection.forget()
        except exc.SQLAlchemyError:
            self.close()
            raise

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._version = -1
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _data_version(self) -> int:
        # The number is relative to its connection, and only true outside of transactions.
        return int(self._opened().driver.execute("PRAGMA data_version").fetchone()[0])

    def _opened(self) -> SqliteConnection:
        if self._connection is None:
            self._connection = SqliteConnection(self._engine)
            self._connection.driver.execute("PRAGMA data_version").fetchall()
            self._log = FileChanges.of(self._log_path)  # is there, and stays, while a connection is open
        return self._connection


class PostgresWatch:
    """Listens for notifications on a connection of its own, in a thread of its own; reconnects when it is cut."""

    def __init__(self, engine: Engine, heard: Callable[[str | None], None]) -> None:
        self.interval = SAFETY
        self.descriptor = None
        self._engine = engine
        self._connection: PostgresConnection | None = None
        self._heard = heard
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="everturn-store-listen", daemon=True)

    def rest(self, took: float) -> float:  # noqa: ARG002 - only who has news is looked at
        return 0.0

    def start(self) -> None:
        if self._thread.ident is None:
            self._thread.start()

    def look(self, *, woken: bool) -> bool:  # noqa: ARG002 - an interval without news is the safety look
        return True

    @contextmanager
    def reading(self) -> Generator[Connection]:
        connection = self._connection = self._connection or PostgresConnection(self._engine)
        try:
            with connection.transaction(write=False):
                yield connection
        except exc.SQLAlchemyError:
            self._drop()
            raise

    def close(self) -> None:
        self._drop()
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _listen(self) -> None:
        delay = _FIRST_DELAY
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                self._listen_once()
            except (psycopg.Error, exc.SQLAlchemyError):
                # The tail goes on by its safety look, and reports the store as unavailable if that fails too.
                delay = _FIRST_DELAY if time.monotonic() - begun > _LAST_DELAY else min(delay * 2, _LAST_DELAY)
                self._stop.wait(delay)

    def _listen_once(self) -> None:
        pooled = self._engine.raw_connection()
        connection = cast("psycopg.Connection[Any]", pooled.driver_connection)
        pooled.detach()
        try:
            connection.rollback()
            connection.autocommit = True
            connection.execute(f"LISTEN {CHANNEL}")
            self._heard(None)  # anything may have happened before we listened
            while not self._stop.is_set():
                for notice in connection.notifies(timeout=_LISTEN):
                    self._heard(notice.payload)
        finally:
            connection.close()
