"""Stream events: numbered under the turn's row, so that whoever has read number n has read all before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select, text, update

from everturn.chunks import Event
from everturn.errors import TurnNotFound
from everturn.store.columns import AnyRow, now
from everturn.store.encoding import Encoded, encode
from everturn.store.locks import update_turn
from everturn.store.records import EventBatch
from everturn.store.tables import stream_events, turns
from everturn.turns import TERMINAL, JsonDict

CHANNEL: Final = "everturn_events"
"""PostgreSQL notifies readers here; the payload is a request id."""
_NOTIFY: Final = text(f"SELECT pg_notify('{CHANNEL}', id) FROM unnest(CAST(:ids AS text[])) AS id")  # noqa: S608
_INSERT: Final = insert(stream_events)
# Locked in the order of their ids: two groups of writers can then not block each other.
_HEADS: Final = select(
    turns.c.request_id, turns.c.status, turns.c.last_seq, turns.c.current_step, turns.c.current_attempt
).with_for_update(key_share=True)
_LOCK_HEADS: Final = _HEADS.where(turns.c.request_id.in_(bindparam("ids", expanding=True))).order_by(turns.c.request_id)
_LOCK_HEAD: Final = _HEADS.where(turns.c.request_id == bindparam("turn"))
_MOVE: Final = update(turns).where(turns.c.request_id == bindparam("turn")).values(last_seq=bindparam("seq"))


@dataclass(frozen=True, slots=True)
class PreparedEvent:
    """An event whose data are JSON text already."""

    type: str
    data: Encoded


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """An EventBatch whose events are prepared."""

    request_id: str
    events: Sequence[PreparedEvent]
    step: int | None = None
    attempt: int | None = None


def prepare(event: Event) -> PreparedEvent:
    """Raises BadInput if the event's data have no JSON form."""
    return PreparedEvent(event.type, encode(dict(event.data)))


def prepare_batch(batch: EventBatch) -> PreparedBatch:
    return PreparedBatch(batch.request_id, [prepare(event) for event in batch.events], batch.step, batch.attempt)


class EventLog:
    """Collects the events of one turn within a transaction that holds the turn's row, and writes them at once."""

    def __init__(self, request_id: str, last_seq: int) -> None:
        self._request_id = request_id
        self._last_seq = last_seq
        self._rows: list[JsonDict] = []
        self._now = now()

    def add(self, *events: Event, step: int | None = None, attempt: int = 0) -> None:
        self.add_prepared([prepare(event) for event in events], step=step, attempt=attempt)

    def add_prepared(self, events: Sequence[PreparedEvent], *, step: int | None = None, attempt: int = 0) -> None:
        for event in events:
            self._last_seq += 1
            self._rows.append(_event_row(self._request_id, self._last_seq, event, step, attempt, self._now))

    def save(self, connection: Connection, **values: Any) -> None:
        """Writes the events and, in the same statement as the new last number, `values` of the turn."""
        if self._rows:
            values["last_seq"] = self._last_seq
            connection.execute(_INSERT, self._rows)
            notify(connection, [self._request_id])
        if values:
            update_turn(connection, self._request_id, **values)


def append_batches(
    connection: Connection, batches: Sequence[PreparedBatch], written_at: datetime, *, again: bool, must_exist: bool
) -> list[bool]:
    """Appends the batches, at most one per writer, in one go; False for each that is fenced.

    A batch is fenced if its turn is over or unknown, or if a later attempt of its step, or a later step, was opened.
    written_at: the mark of this group of batches. again: an earlier try of the same group may have been committed
    without our knowing; those batches are found by their mark and not written twice. must_exist: an unknown turn raises
    TurnNotFound instead.
    """
    ids = sorted({batch.request_id for batch in batches})
    heads = {row.request_id: row for row in _lock_heads(connection, ids)}
    if must_exist:
        for request_id in ids:
            if request_id not in heads:
                raise TurnNotFound(request_id)
    if again and _already_written(connection, batches, written_at):
        return [True] * len(batches)
    last = {request_id: row.last_seq for request_id, row in heads.items()}
    rows: list[JsonDict] = []
    accepted: list[bool] = []
    for batch in batches:
        head = heads.get(batch.request_id)
        accepted.append(head is not None and not _is_fenced(batch, head))
        if accepted[-1]:
            for event in batch.events:
                last[batch.request_id] += 1
                seq = last[batch.request_id]
                rows.append(_event_row(batch.request_id, seq, event, batch.step, batch.attempt or 0, written_at))
    _write_rows(connection, rows, {key: seq for key, seq in last.items() if seq > heads[key].last_seq})
    return accepted


def notify(connection: Connection, request_ids: Sequence[str]) -> None:
    """Tells the readers of other processes, once the transaction is committed; SQLite's readers look for themselves."""
    if connection.dialect.name != "postgresql":
        return
    connection.execute(_NOTIFY, {"ids": list(request_ids)})


def _event_row(
    request_id: str, seq: int, event: PreparedEvent, step: int | None, attempt: int, written_at: datetime
) -> JsonDict:
    return {
        "request_id": request_id,
        "seq": seq,
        "step": step,
        "attempt": attempt,
        "type": event.type,
        "data": event.data,
        "created_at": written_at,
    }


def _lock_heads(connection: Connection, ids: Sequence[str]) -> Sequence[AnyRow]:
    if len(ids) == 1:
        return connection.execute(_LOCK_HEAD, {"turn": ids[0]}).all()
    return connection.execute(_LOCK_HEADS, {"ids": ids}).all()


def _is_fenced(batch: PreparedBatch, head: AnyRow) -> bool:
    if head.status in TERMINAL:
        return True
    if batch.attempt is None or batch.step is None or head.current_step is None:
        return False
    return (batch.step, batch.attempt) < (head.current_step, head.current_attempt)


def _already_written(connection: Connection, batches: Sequence[PreparedBatch], written_at: datetime) -> bool:
    ids = {batch.request_id for batch in batches}
    marked = select(stream_events.c.seq).where(
        stream_events.c.request_id.in_(ids), stream_events.c.created_at == written_at
    )
    return connection.execute(marked.limit(1)).first() is not None


def _write_rows(connection: Connection, rows: list[JsonDict], last: dict[str, int]) -> None:
    if not rows:
        return
    connection.execute(_INSERT, rows)
    connection.execute(_MOVE, [{"turn": request_id, "seq": seq} for request_id, seq in last.items()])
    notify(connection, list(last))
