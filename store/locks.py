"""Row locks, always taken in this order: the thread, then the turn. SQLite's writers hold the one lock of the file.

Statements that turns run are built once, here and in the other modules: building takes longer than running them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, Insert, Table, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from everturn.errors import TurnNotFound
from everturn.store.columns import AnyRow
from everturn.store.tables import threads, turns
from everturn.turns import JsonDict

# FOR NO KEY UPDATE (key_share): rows that refer to the locked one may still be inserted meanwhile.
_LOCK_THREAD: Final = (
    select(threads.c.running_request_id, threads.c.last_position, threads.c.summary_from)
    .where(threads.c.thread_id == bindparam("thread"))
    .with_for_update(key_share=True)
)
_NOT_LOADED: Final = frozenset({"principal", "body", "config"})  # may be large, and no write depends on them
_LOCK_TURN: Final = (
    select(*(column for column in turns.c if column.name not in _NOT_LOADED))
    .where(turns.c.request_id == bindparam("turn"))
    .with_for_update(key_share=True)
)
_THREAD_OF: Final = select(turns.c.thread_id).where(turns.c.request_id == bindparam("turn"))
_UPDATE_THREAD: Final = update(threads).where(threads.c.thread_id == bindparam("thread"))
_UPDATE_TURN: Final = update(turns).where(turns.c.request_id == bindparam("turn"))


def lock_thread(connection: Connection, thread_id: str) -> AnyRow:
    """The thread's row, locked; it exists from the thread's first turn on."""
    return connection.execute(_LOCK_THREAD, {"thread": thread_id}).one()


def find_turn(connection: Connection, request_id: str) -> AnyRow | None:
    """The turn's row, locked."""
    return connection.execute(_LOCK_TURN, {"turn": request_id}).one_or_none()


def lock_turn(connection: Connection, request_id: str) -> AnyRow:
    """The turn's row, locked. Raises TurnNotFound."""
    row = find_turn(connection, request_id)
    if row is None:
        raise TurnNotFound(request_id)
    return row


def thread_of(connection: Connection, request_id: str) -> str | None:
    """The thread of a turn; it never changes, so no lock is needed."""
    found: str | None = connection.scalar(_THREAD_OF, {"turn": request_id})
    return found


def update_thread(connection: Connection, thread_id: str, **values: Any) -> None:
    connection.execute(_UPDATE_THREAD, {"thread": thread_id, **values})


def update_turn(connection: Connection, request_id: str, **values: Any) -> None:
    connection.execute(_UPDATE_TURN, {"turn": request_id, **values})


def insert_or_ignore(connection: Connection, table: Table, *rows: JsonDict) -> None:
    """Inserts the rows, leaving alone those whose key exists."""
    connection.execute(_insert_or_ignore(table, connection.dialect.name), rows)


@cache
def _insert_or_ignore(table: Table, dialect: str) -> Insert:
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()
