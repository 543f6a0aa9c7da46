"""Connections: how a SQLite file and a PostgreSQL database are opened."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from everturn.store.address import Address
from everturn.store.encoding import dump, load

READERS: Final = 3
"""Reads that a process runs at once on SQLite; the writer is one, as the file has one lock."""
PG_THREADS: Final = 8
"""Transactions that a process runs at once on PostgreSQL."""
BUSY_MS: Final = 2_000
"""How long SQLite itself waits for the lock of another process before we take over with our own retries."""
STATEMENT_LIMIT: Final = "15s"
LOCK_LIMIT: Final = "10s"
IDLE_LIMIT: Final = "60s"
_SPARE: Final = 3  # connections for the tail and for opening, beside the threads


def sqlite_engine(address: Address, *, write: bool, timeout: float, readers: int = READERS) -> Engine:
    """An engine for SqliteConnections; without `write` they cannot write. Nothing is begun by itself."""
    engine = create_engine(
        address.url,
        json_serializer=dump,
        json_deserializer=load,
        hide_parameters=True,
        pool_size=1 if write else readers + _SPARE,
        max_overflow=1 if write else 0,
        pool_timeout=timeout,
        connect_args={"timeout": BUSY_MS / 1000, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:  # pyright: ignore[reportUnusedFunction]
        _prepare_sqlite(connection, write=write)

    return engine


def postgres_engine(address: Address, *, timeout: float, connections: int = PG_THREADS) -> Engine:
    return create_engine(
        address.url,
        json_serializer=dump,
        hide_parameters=True,
        pool_size=connections + _SPARE,
        max_overflow=0,
        pool_timeout=timeout,
        connect_args=postgres_arguments(address, timeout),
    )


def postgres_arguments(address: Address, timeout: float) -> dict[str, Any]:
    """Connection settings that give every wait on the server and the network an end; those in the address win."""
    limits = {
        "statement_timeout": STATEMENT_LIMIT,
        "lock_timeout": LOCK_LIMIT,
        "idle_in_transaction_session_timeout": IDLE_LIMIT,
    }
    given = address.url.query
    options = [f"-c {name}={value}" for name, value in limits.items()]
    options += [str(given["options"])] if "options" in given else []
    defaults = {
        "application_name": "everturn",
        "connect_timeout": max(2, round(timeout)),  # libpq takes whole seconds, at least 2
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
    }
    return {key: value for key, value in defaults.items() if key not in given} | {"options": " ".join(options)}


def _prepare_sqlite(connection: DBAPIConnection, *, write: bool) -> None:
    # Transactions are begun by our own statement; the driver's implicit BEGIN would take the lock too late.
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        if write:
            cursor.execute("PRAGMA journal_mode = WAL")
        else:
            cursor.execute("PRAGMA query_only = ON")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
    finally:
        cursor.close()
