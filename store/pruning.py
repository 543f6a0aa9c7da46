"""Retention: the stream events of turns that ended long ago go, except each turn's last."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, delete, select, update

from everturn.store.columns import now
from everturn.store.tables import stream_events, turns

PRUNED_TURNS: Final = 50
"""Turns per call: a larger transaction would keep SQLite's writers waiting."""


def prune_events(connection: Connection, older_than: float, limit: int) -> int:
    """Deletes events of up to `limit` turns that ended more than `older_than` seconds ago; how many were deleted."""
    ended_before = now() - timedelta(seconds=older_than)
    due = (
        select(turns.c.request_id, turns.c.last_seq)
        .where(turns.c.ended_at < ended_before, ~turns.c.events_pruned)
        .order_by(turns.c.ended_at)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
    )
    deleted = 0
    for row in connection.execute(due).all():
        old = (stream_events.c.request_id == row.request_id) & (stream_events.c.seq < row.last_seq)
        deleted += connection.execute(delete(stream_events).where(old)).rowcount
        connection.execute(update(turns).where(turns.c.request_id == row.request_id).values(events_pruned=True))
    return deleted
