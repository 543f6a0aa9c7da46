"""Database errors, in our words: worth another try, out of reach, or a fault of ours."""

from __future__ import annotations

import sqlite3
from typing import Final

import psycopg
from sqlalchemy import exc

from everturn.errors import StoreRefused, StoreUnavailable
from everturn.store.address import Address

_SQLITE_TRANSIENT: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_SQLITE_BROKEN: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_PG_TRANSIENT: Final = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # lock not available in time
        "57014",  # statement cancelled by its time limit
        "57P01",  # server is shutting down
        "57P02",  # server crashed
        "57P03",  # server is starting
        "53300",  # too many connections
    }
)
_PG_CONNECTION: Final = "08"
_PG_NO_TABLE: Final = ("42P01", "42703", "3F000")
_HOPELESS: Final = ("authentication failed", "does not exist", "no password supplied", "could not translate host name")
_SETUP: Final = "run `everturn setup` with this store, then try again"


def is_transient(error: exc.SQLAlchemyError) -> bool:
    """True if the same transaction may succeed a little later."""
    if isinstance(error, exc.TimeoutError):  # no free connection in the pool
        return True
    if not isinstance(error, exc.DBAPIError):
        return False
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return _sqlite_code(cause) in _SQLITE_TRANSIENT
    if isinstance(cause, psycopg.Error):
        return _is_transient_pg(error, cause)
    return False


def unavailable(address: Address, error: exc.SQLAlchemyError) -> StoreUnavailable | None:
    """The error for callers if the store cannot be used; None if `error` is a fault of the statement."""
    cause = error.orig if isinstance(error, exc.DBAPIError) else error
    if _has_no_tables(cause):
        return StoreUnavailable(address.safe, "its tables are missing or of another version", _SETUP)
    out_of_reach = isinstance(error, exc.OperationalError | exc.InterfaceError | exc.TimeoutError)
    if not (out_of_reach or is_transient(error) or _sqlite_code(cause) in _SQLITE_BROKEN):
        return None
    return StoreUnavailable(address.safe, reason_of(address, cause))


def refused(address: Address, error: exc.SQLAlchemyError) -> StoreRefused | None:
    """The error for callers if the database itself said no to the statement; None if it never got that far."""
    return StoreRefused(address.safe, reason_of(address, error.orig)) if isinstance(error, exc.DBAPIError) else None


def reason_of(address: Address, cause: object) -> str:
    """First line of a driver's message, without passwords."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    reason = lines[0] if lines else type(cause).__name__
    for secret in address.secrets:
        reason = reason.replace(secret, "***")
    return reason


def _sqlite_code(cause: object) -> int:
    """SQLite's primary result code, 0 for errors of other drivers."""
    return int(getattr(cause, "sqlite_errorcode", 0)) & 0xFF


def _is_transient_pg(error: exc.DBAPIError, cause: psycopg.Error) -> bool:
    state = cause.sqlstate
    if state is not None:
        return state in _PG_TRANSIENT or state.startswith(_PG_CONNECTION)
    if any(word in str(cause) for word in _HOPELESS):
        return False
    return error.connection_invalidated or isinstance(cause, psycopg.OperationalError)


def _has_no_tables(cause: object) -> bool:
    if isinstance(cause, psycopg.Error):
        return cause.sqlstate in _PG_NO_TABLE
    return isinstance(cause, sqlite3.Error) and str(cause).startswith(("no such table", "no such column"))
