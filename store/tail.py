"""Tails and waits, as their readers use them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import Final

from sqlalchemy import Connection, select

from everturn.chunks import Chunk
from everturn.errors import BadInput
from everturn.store.ending import ended
from everturn.store.hub import Hub, Subscription
from everturn.store.records import Ended
from everturn.store.replay import replay
from everturn.store.tables import stream_events, turns
from everturn.store.transactions import Transactions
from everturn.turns import TERMINAL

_CHECK: Final = 10.0
"""Seconds without news after which a reader looks for itself: the turn's events may have been pruned meanwhile."""


async def follow(hub: Hub, transactions: Transactions, request_id: str, after: int) -> AsyncGenerator[list[Chunk]]:
    """The chunks after number `after`, as they come, until the end chunk. Raises BadInput for an `after` that cannot
    be."""
    if after < 0:
        raise BadInput(f"after must be 0 or the number of a chunk, not {after}")
    told = await transactions.read(partial(remainder, request_id=request_id, after=after))
    if told is not None:
        yield told
        return
    subscription = hub.subscribe(request_id, after)
    seen, over = after, False
    try:
        while not over:
            chunks = await _next(hub, transactions, subscription, seen)
            if chunks:
                seen, over = chunks[-1].seq, chunks[-1].is_end
                yield chunks
    finally:
        hub.unsubscribe(subscription)


async def one_by_one(batches: AsyncGenerator[list[Chunk]]) -> AsyncGenerator[Chunk]:
    """The same chunks, each by itself."""
    async with contextlib.aclosing(batches):
        async for chunks in batches:
            for chunk in chunks:
                yield chunk


async def until_over(hub: Hub, transactions: Transactions, request_id: str) -> Ended:
    """How the turn ended, once it has."""
    already = await transactions.read(partial(ended, request_id=request_id))
    if already is not None:  # most ask when they have read the stream to its end
        return already
    subscription = hub.subscribe(request_id, ends_only=True)
    try:
        while True:
            found = await transactions.read(partial(ended, request_id=request_id))
            if found is not None:
                return found
            with contextlib.suppress(TimeoutError):
                await subscription.next(_CHECK)
    finally:
        hub.unsubscribe(subscription)


async def _next(hub: Hub, transactions: Transactions, subscription: Subscription, seen: int) -> list[Chunk]:
    try:
        chunks = await subscription.next(_CHECK)
    except TimeoutError:
        look = partial(remainder, request_id=subscription.request_id, after=seen)
        return await transactions.read(look) or []
    if subscription.starved:
        hub.wake({subscription.request_id})
    return chunks


def remainder(connection: Connection, request_id: str, after: int) -> list[Chunk] | None:
    """All that is left of a stream that is over or was pruned; None if the stream has to be followed.

    Raises BadInput if `after` is beyond what was written.
    """
    query = select(turns.c.status, turns.c.last_seq, turns.c.events_pruned)
    turn = connection.execute(query.where(turns.c.request_id == request_id)).one_or_none()
    if turn is None:
        return None
    if turn.status in TERMINAL and after >= turn.last_seq:
        return []
    if after > turn.last_seq:
        raise BadInput(f"after={after} is beyond the last chunk of turn {request_id!r}, which is {turn.last_seq}")
    if not turn.events_pruned:
        return None
    last = select(stream_events.c.seq, stream_events.c.type, stream_events.c.data).where(
        stream_events.c.request_id == request_id, stream_events.c.seq == turn.last_seq
    )
    seq, kind, data = connection.execute(last).one()
    return replay(connection, request_id, after, Chunk(seq, kind, data))
