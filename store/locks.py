"""Row locks, always taken in this order: the thread, then the turn. SQLite's writers hold the one lock of the file."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from everturn.errors import TurnNotFound
from everturn.store.columns import AnyRow
from everturn.store.tables import threads, turns
from everturn.turns import JsonDict


def lock_thread(connection: Connection, thread_id: str) -> AnyRow:
    """The thread's row, locked; it exists from the thread's first turn on."""
    query = select(threads.c.running_request_id, threads.c.last_position)
    return connection.execute(_locked(query.where(threads.c.thread_id == thread_id))).one()


def find_turn(connection: Connection, request_id: str) -> AnyRow | None:
    """The turn's row, locked."""
    return connection.execute(_locked(select(turns).where(turns.c.request_id == request_id))).one_or_none()


def lock_turn(connection: Connection, request_id: str) -> AnyRow:
    """The turn's row, locked. Raises TurnNotFound."""
    row = find_turn(connection, request_id)
    if row is None:
        raise TurnNotFound(request_id)
    return row


def thread_of(connection: Connection, request_id: str) -> str | None:
    """The thread of a turn; it never changes, so no lock is needed."""
    return connection.scalar(select(turns.c.thread_id).where(turns.c.request_id == request_id))


def insert_or_ignore(connection: Connection, table: Table, *rows: JsonDict) -> None:
    """Inserts the rows, leaving alone those whose key exists."""
    if connection.dialect.name == "postgresql":
        connection.execute(postgresql.insert(table).on_conflict_do_nothing(), rows)
    else:
        connection.execute(sqlite.insert(table).on_conflict_do_nothing(), rows)


def _locked(query: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    # FOR NO KEY UPDATE: rows that refer to this one may still be inserted meanwhile.
    return query.with_for_update(key_share=True)
