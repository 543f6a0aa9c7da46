"""A stream that was pruned, told again from the stored message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from everturn.chunks import START, TEXT_DELTA, TEXT_END, TEXT_START, Chunk
from everturn.messages import Part
from everturn.store.assembly import texts_of
from everturn.store.tables import messages, turns


def replay(connection: Connection, request_id: str, after: int, end: Chunk) -> list[Chunk]:
    """The start, the text and the end of a pruned turn.

    A reader that comes back in the middle (after > 0) gets the end alone: the pieces between cannot be told again with
    their old numbers. The end keeps its number, or gets one
    behind the text where the turn had streamed less than its message holds.
    """
    if after > 0:
        return [end]
    turn = connection.execute(
        select(turns.c.thread_id, turns.c.message_id, turns.c.first_part).where(turns.c.request_id == request_id)
    ).one()
    parts: list[Part] | None = connection.scalar(
        select(messages.c.parts).where(messages.c.message_id == turn.message_id)
    )
    texts = texts_of((parts or [])[turn.first_part :])
    facts = {"messageId": turn.message_id, "requestId": request_id, "threadId": turn.thread_id}
    told: list[tuple[str, dict[str, Any]]] = [(START, facts)]
    for index, text in enumerate(texts):
        block = {"id": f"replay-{index}"}
        told += [(TEXT_START, block), (TEXT_DELTA, {**block, "delta": text}), (TEXT_END, block)]
    chunks = [Chunk(seq, kind, data) for seq, (kind, data) in enumerate(told, start=1)]
    return [*chunks, replace(end, seq=max(end.seq, len(chunks) + 1))]
