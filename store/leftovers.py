"""What nobody may be at work on any more: unfinished turns and messages without a turn, for the reconciler."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection, delete, select

from everturn.store.columns import now
from everturn.store.tables import drafts, turns
from everturn.store.transactions import Transactions

_UNFINISHED = ("queued", "running", "waiting")


class Leftovers:
    """Reads and deletes them in pages, by request id. timeout: seconds to wait for the database; then, or for a write
    after 15 s, StoreUnavailable."""

    def __init__(self, transactions: Transactions, timeout: float) -> None:
        self._transactions, self._timeout = transactions, timeout

    async def unfinished(self, older_than: float, after: str, limit: int) -> list[str]:
        """Turns behind `after` that are not over `older_than` seconds after they were submitted."""
        work = partial(_unfinished, older_than=older_than, after=after, limit=limit)
        return await self._transactions.read(work, patience=self._timeout)

    async def drafts(self, older_than: float, after: str, limit: int) -> list[str]:
        """Turns behind `after` whose message has waited for their begin for `older_than` seconds."""
        work = partial(_old_drafts, older_than=older_than, after=after, limit=limit)
        return await self._transactions.read(work, patience=self._timeout)

    async def drop_drafts(self, request_ids: Sequence[str], older_than: float) -> None:
        """Deletes the messages of these turns, except those that were sent again meanwhile."""
        await self._transactions.write(partial(_drop_drafts, request_ids=request_ids, older_than=older_than))


def _unfinished(connection: Connection, older_than: float, after: str, limit: int) -> list[str]:
    query = (
        select(turns.c.request_id)
        .where(turns.c.status.in_(_UNFINISHED), turns.c.submitted_at < _before(older_than), turns.c.request_id > after)
        .order_by(turns.c.request_id)
        .limit(limit)
    )
    return list(connection.scalars(query))


def _old_drafts(connection: Connection, older_than: float, after: str, limit: int) -> list[str]:
    query = (
        select(drafts.c.request_id)
        .distinct()
        .where(drafts.c.created_at < _before(older_than), drafts.c.request_id > after)
        .order_by(drafts.c.request_id)
        .limit(limit)
    )
    return list(connection.scalars(query))


def _drop_drafts(connection: Connection, request_ids: Sequence[str], older_than: float) -> None:
    due = drafts.c.request_id.in_(request_ids) & (drafts.c.created_at < _before(older_than))
    connection.execute(delete(drafts).where(due))


def _before(seconds: float) -> datetime:
    return now() - timedelta(seconds=seconds)
