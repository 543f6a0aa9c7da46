"""Queued turns whose place another turn takes: superseded by a later message, or answered together with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, delete, select, update

from everturn.chunks import ABORT, Event
from everturn.messages import Part
from everturn.policies import may_be_joined
from everturn.store.columns import now
from everturn.store.events import EventLog
from everturn.store.locks import insert_or_ignore, lock_turn
from everturn.store.queue import Waiting, came_later, joiners_of
from everturn.store.records import Admission
from everturn.store.rows import principal_value
from everturn.store.tables import drafts, turns
from everturn.turns import TERMINAL, JsonDict

_KEPT: Final = (
    select(
        turns.c.request_id,
        turns.c.agent,
        turns.c.tenant_id,
        turns.c.principal,
        drafts.c.parts,
        drafts.c["metadata"],
    )
    .join(drafts, (drafts.c.request_id == turns.c.request_id) & (drafts.c.digest == turns.c.digest))
    .where(turns.c.request_id.in_(bindparam("ids", expanding=True)))
)
_SUPERSEDED: Final = (
    select(turns.c.request_id).where(turns.c.superseded_by == bindparam("turn")).order_by(turns.c.submitted_at)
)


@dataclass(frozen=True, slots=True)
class Joiner:
    """A queued turn and its message, which the turn before it is going to answer, too."""

    turn: Waiting
    parts: list[Part]
    metadata: JsonDict | None


def joiners(connection: Connection, me: Waiting, admission: Admission, others: Sequence[Waiting]) -> list[Joiner]:
    """The turns right behind this one that may join it: of the same agent and user, with nobody else to wait for."""
    found = joiners_of(me, others)
    if not found:
        return []
    kept = {row.request_id: row for row in connection.execute(_KEPT, {"ids": [turn.request_id for turn in found]})}
    mine = (admission.agent, admission.tenant_id, principal_value(admission.principal))
    company = {me.request_id}
    joined: list[Joiner] = []
    for turn in found:
        row = kept.get(turn.request_id)
        if row is None or (row.agent, row.tenant_id, row.principal) != mine:
            break
        if turn.after not in (None, *company) and not is_settled(connection, admission.thread_id, turn.after):
            break
        company.add(turn.request_id)
        joined.append(Joiner(turn, row.parts, row.metadata))
    return joined


def keep_message(connection: Connection, admission: Admission, asked_at: datetime) -> None:
    """Keeps the message of a queued turn where the turn that it may join finds it."""
    if not may_be_joined(admission.policy):
        return
    metadata = admission.message_metadata or None
    if not admission.draft:
        row = {"request_id": admission.request_id, "digest": admission.digest, "parts": admission.parts}
        insert_or_ignore(connection, drafts, {**row, "metadata": metadata, "created_at": asked_at})
    elif metadata is not None:
        mine = (drafts.c.request_id == admission.request_id) & (drafts.c.digest == admission.digest)
        connection.execute(update(drafts).where(mine).values(metadata=metadata))


def supersede(connection: Connection, request_id: str, by: str, *, joined: bool) -> None:
    """Ends a queued turn. joined: its message is answered all the same, by the turn that takes its place."""
    turn = lock_turn(connection, request_id)
    reason = f"its message joined turn {by}" if joined else f"the later turn {by} took its place"
    log = EventLog(request_id, turn.last_seq)
    log.add(Event(ABORT, {"reason": reason, "status": "superseded", "supersededBy": by, "joined": joined}))
    log.save(connection, status="superseded", superseded_by=by, joined=joined, ended_at=now())
    connection.execute(delete(drafts).where(drafts.c.request_id == request_id))


def supersede_earlier(connection: Connection, me: Waiting, others: Sequence[Waiting]) -> list[Waiting]:
    """Takes the place of the queued turns that were submitted before this one; those that are left."""
    left: list[Waiting] = []
    for other in others:
        if came_later(me, other):
            supersede(connection, other.request_id, me.request_id, joined=False)
        else:
            left.append(other)
    return left


def superseded_by(connection: Connection, request_id: str) -> list[str]:
    """The turns whose place this one took, in order."""
    return list(connection.scalars(_SUPERSEDED, {"turn": request_id}))


def is_settled(connection: Connection, thread_id: str, request_id: str | None) -> bool:
    """Whether a turn is over; one of another thread counts as over, one that has not begun does not."""
    query = select(turns.c.status, turns.c.thread_id).where(turns.c.request_id == request_id)
    row = connection.execute(query).one_or_none()
    return row is not None and (row.thread_id != thread_id or row.status in TERMINAL)
