"""What nobody may be at work on any more: unfinished turns and messages without a turn, for the reconciler."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select

from everturn.store.columns import now
from everturn.store.tables import drafts, turns

_UNFINISHED = ("queued", "running", "waiting")


def unfinished(connection: Connection, older_than: float, after: str, limit: int) -> list[str]:
    """Request ids, in order, of turns that are not over and were submitted more than `older_than` seconds ago."""
    query = (
        select(turns.c.request_id)
        .where(turns.c.status.in_(_UNFINISHED), turns.c.submitted_at < _before(older_than), turns.c.request_id > after)
        .order_by(turns.c.request_id)
        .limit(limit)
    )
    return list(connection.scalars(query))


def old_drafts(connection: Connection, older_than: float, after: str, limit: int) -> list[str]:
    """Request ids, in order, of messages that have waited for more than `older_than` seconds."""
    query = (
        select(drafts.c.request_id)
        .distinct()
        .where(drafts.c.created_at < _before(older_than), drafts.c.request_id > after)
        .order_by(drafts.c.request_id)
        .limit(limit)
    )
    return list(connection.scalars(query))


def drop_drafts(connection: Connection, request_ids: Sequence[str], older_than: float) -> None:
    """Deletes the messages of these turns, except those that were sent again meanwhile."""
    due = drafts.c.request_id.in_(request_ids) & (drafts.c.created_at < _before(older_than))
    connection.execute(delete(drafts).where(due))


def _before(seconds: float) -> datetime:
    return now() - timedelta(seconds=seconds)
