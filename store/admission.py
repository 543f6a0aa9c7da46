"""`begin`: a turn asks for its thread. One transaction, safe to repeat; a queued turn that wakes asks again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import Connection, bindparam, delete, select, update

from everturn.chunks import ABORT, ERROR, QUEUED, Event
from everturn.errors import ThreadBusy
from everturn.messages import Part
from everturn.store.columns import AnyRow, from_epoch, now
from everturn.store.events import EventLog
from everturn.store.joining import (
    is_settled,
    joiners,
    keep_message,
    supersede,
    supersede_earlier,
    superseded_by,
)
from everturn.store.locks import (
    find_turn,
    insert_or_ignore,
    lock_thread,
    lock_turn,
    thread_of,
    update_turn,
)
from everturn.store.queue import Waiting, ahead_of, came_later, hold_until, superseder_of
from everturn.store.records import Admission, Admitted
from everturn.store.room import lacks_room
from everturn.store.rows import error_values, principal_value
from everturn.store.starting import run
from everturn.store.tables import IS_QUEUED, drafts, stream_events, threads, turns
from everturn.turns import TERMINAL, JsonDict, TurnError

BUSY: Final = "ThreadBusy"
FULL: Final = "TooBusy"
_WAITING: Final = (
    turns.c.request_id,
    turns.c.submitted_at,
    turns.c.after_request_id,
    turns.c.policy,
    turns.c.trigger,
)
_QUEUE: Final = select(*_WAITING).where(turns.c.thread_id == bindparam("thread"), IS_QUEUED)
_TURN: Final = select(*_WAITING).where(turns.c.request_id == bindparam("turn"))


def begin(connection: Connection, admission: Admission) -> Admitted:
    """Lets the turn run, queues it, or refuses it."""
    asked_at = now()
    thread_id = thread_of(connection, admission.request_id)
    if thread_id is None:
        thread_id = admission.thread_id
        insert_or_ignore(connection, threads, _new_thread(thread_id, asked_at))
    thread = lock_thread(connection, thread_id)
    turn = find_turn(connection, admission.request_id)
    is_new = turn is None
    if turn is None:
        insert_or_ignore(connection, turns, _new_turn(admission))
        turn = lock_turn(connection, admission.request_id)
    if turn.digest != admission.digest or turn.thread_id != admission.thread_id:
        return Admitted("conflict")
    if turn.status in TERMINAL:
        return _over(turn, admission)
    if turn.status != "queued":
        return _adopt(connection, turn, admission)
    if admission.withdrawn:
        return Admitted("withdrawn", manifest=turn.manifest or {})
    return _claim(connection, thread, turn, admission, asked_at, is_new=is_new)


def put_draft(connection: Connection, request_id: str, digest: str, parts: list[Part]) -> None:
    """Keeps a user message until its turn begins. The digest keeps apart what was sent under one request id: only one
    of them becomes a turn, and it must find its own message. Sent again, it is as new: see Leftovers."""
    row = {"request_id": request_id, "digest": digest, "parts": parts, "created_at": now()}
    insert_or_ignore(connection, drafts, row)
    mine = (drafts.c.request_id == request_id) & (drafts.c.digest == digest)
    connection.execute(update(drafts).where(mine).values(created_at=row["created_at"]))


def queue_of(connection: Connection, thread_id: str) -> list[Waiting]:
    """The queued turns of a thread, in no order."""
    return [_waiting(row) for row in connection.execute(_QUEUE, {"thread": thread_id})]


def _waiting(row: AnyRow) -> Waiting:
    return Waiting(row.request_id, row.submitted_at, row.after_request_id, row.policy, row.trigger != "continue")


def _new_thread(thread_id: str, asked_at: datetime) -> JsonDict:
    counters = dict.fromkeys(("last_position", "summary_from", "summary_upto"), 0)
    return {"thread_id": thread_id, "running_request_id": None, "created_at": asked_at, **counters}


def _new_turn(admission: Admission) -> JsonDict:
    return {
        "request_id": admission.request_id,
        "thread_id": admission.thread_id,
        "agent": admission.agent,
        "status": "queued",
        "policy": admission.policy,
        "trigger": admission.trigger,
        "digest": admission.digest,
        "run_id": admission.run_id,
        "after_request_id": admission.after,
        "tenant_id": admission.tenant_id,
        "principal": principal_value(admission.principal),
        "principal_id": admission.principal.id if admission.principal else None,
        "body": admission.body,
        "manifest": admission.manifest,
        "joined": False,
        "config": admission.config,
        "submitted_at": from_epoch(admission.submitted_at),
        "events_pruned": False,
        **dict.fromkeys(_COUNTERS, 0),
    }


_COUNTERS = (
    "steps",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "model_ms",
    "attempts_failed",
    "first_part",
    "prompt_position",
    "current_attempt",
    "last_seq",
)


def _over(turn: AnyRow, admission: Admission) -> Admitted:
    # The run that was refused may ask again when the answer got lost; any other run learns that the turn is over.
    if turn.error_type in (BUSY, FULL) and turn.run_id == admission.run_id:
        error = TurnError(turn.error_type, turn.error_message)
        return Admitted("busy" if turn.error_type == BUSY else "full", manifest=turn.manifest or {}, error=error)
    return Admitted("known", manifest=turn.manifest or {})


def _claim(
    connection: Connection, thread: AnyRow, turn: AnyRow, admission: Admission, asked_at: datetime, *, is_new: bool
) -> Admitted:
    """A turn that has not run yet asks for the thread. Whether there is room for it is asked once, when it is new."""
    me = replace(_waiting(turn), after=admission.after)
    others = [other for other in queue_of(connection, turn.thread_id) if other.request_id != turn.request_id]
    running = _running(connection, thread)
    newer = superseder_of(me, [*others, *running])
    if newer is not None:
        supersede(connection, turn.request_id, newer.request_id, joined=False)
        return Admitted("known", manifest=turn.manifest or {})
    behind = _blocker(connection, thread, turn, me, others)
    if behind is not None and me.policy in ("reject", "drop"):
        return _stand_back(connection, thread, turn, behind, asked_at)
    waits = behind is not None and me.policy != "latest"
    full = lacks_room(connection, admission, waits=waits) if is_new else None
    if full is not None:
        return _refuse(connection, turn, "full", TurnError(FULL, str(full)), asked_at)
    if me.policy == "latest":
        return _take_over(connection, thread, turn, admission, me, others, running, asked_at)
    if behind is not None:
        return _queue(connection, turn, admission, behind, asked_at)
    return _start(connection, thread, turn, admission, me, others, asked_at)


def _take_over(
    connection: Connection,
    thread: AnyRow,
    turn: AnyRow,
    admission: Admission,
    me: Waiting,
    others: Sequence[Waiting],
    running: Sequence[Waiting],
    asked_at: datetime,
) -> Admitted:
    """The newest message counts: what waits before it is superseded, what runs is to be stopped."""
    left = supersede_earlier(connection, me, others)
    behind = _blocker(connection, thread, turn, me, left)
    if behind is None:
        return _start(connection, thread, turn, admission, me, left, asked_at)
    queued = _queue(connection, turn, admission, behind, asked_at)
    in_the_way = next((other.request_id for other in running if came_later(me, other)), None)
    return replace(queued, superseded=superseded_by(connection, me.request_id), cancel=in_the_way)


def _start(
    connection: Connection,
    thread: AnyRow,
    turn: AnyRow,
    admission: Admission,
    me: Waiting,
    others: Sequence[Waiting],
    asked_at: datetime,
) -> Admitted:
    """Nobody is in the way of this turn: it runs, unless it still waits for further messages to answer."""
    joining = joiners(connection, me, admission, others)
    until = hold_until(me, [joiner.turn for joiner in joining])
    if until is None or until <= from_epoch(admission.asked_at):
        return run(connection, thread, turn, admission, joining, asked_at)
    keep_message(connection, admission, asked_at)
    update_turn(connection, turn.request_id, run_id=admission.run_id, after_request_id=admission.after)
    return Admitted("queued", manifest=turn.manifest or {}, hold_until=until.timestamp())


def _stand_back(connection: Connection, thread: AnyRow, turn: AnyRow, behind: str, asked_at: datetime) -> Admitted:
    """The thread is busy, and by its policy the turn does not wait for it."""
    running = thread.running_request_id or behind
    if turn.policy == "reject":
        busy = TurnError(BUSY, str(ThreadBusy(turn.thread_id, running)))
        return _refuse(connection, turn, "busy", busy, asked_at, behind)
    connection.execute(delete(drafts).where(drafts.c.request_id == turn.request_id))
    log = EventLog(turn.request_id, turn.last_seq)
    log.add(Event(ABORT, {"reason": f"the thread was busy with turn {running}", "status": "dropped"}))
    log.save(connection, status="dropped", ended_at=asked_at)
    return Admitted("known", manifest=turn.manifest or {})


def _adopt(connection: Connection, turn: AnyRow, admission: Admission) -> Admitted:
    """A turn that runs asks again: its answer got lost, or another run of its workflow goes on with it."""
    if turn.run_id != admission.run_id:
        update_turn(connection, turn.request_id, run_id=admission.run_id)
    return Admitted("run", manifest=turn.manifest or {}, superseded=superseded_by(connection, turn.request_id))


def _running(connection: Connection, thread: AnyRow) -> list[Waiting]:
    """The turn that has the thread, if one has."""
    if thread.running_request_id is None:
        return []
    return [_waiting(row) for row in connection.execute(_TURN, {"turn": thread.running_request_id})]


def _blocker(
    connection: Connection, thread: AnyRow, turn: AnyRow, me: Waiting, others: Sequence[Waiting]
) -> str | None:
    """The turn to wait for: the one that must come first, or the nearest in the queue, or the running one."""
    if me.after is not None and not is_settled(connection, turn.thread_id, me.after):
        return me.after
    ahead = ahead_of(me, others)
    if ahead:
        return ahead[-1].request_id
    running: str | None = thread.running_request_id
    return running


def _queue(connection: Connection, turn: AnyRow, admission: Admission, behind: str, asked_at: datetime) -> Admitted:
    keep_message(connection, admission, asked_at)
    log = EventLog(turn.request_id, turn.last_seq)
    told = select(stream_events.c.data).where(
        stream_events.c.request_id == turn.request_id, stream_events.c.type == QUEUED
    )
    if behind not in [data.get("behind") for data in connection.scalars(told)]:
        log.add(Event(QUEUED, {"behind": behind}))
    log.save(connection, run_id=admission.run_id, after_request_id=admission.after)
    return Admitted("queued", behind=behind, manifest=turn.manifest or {})


def _refuse(
    connection: Connection,
    turn: AnyRow,
    outcome: Literal["busy", "full"],
    error: TurnError,
    asked_at: datetime,
    behind: str | None = None,
) -> Admitted:
    connection.execute(delete(drafts).where(drafts.c.request_id == turn.request_id))
    log = EventLog(turn.request_id, turn.last_seq)
    log.add(Event(ERROR, {"type": error.type, "errorText": error.message}))
    log.save(connection, status="dropped", ended_at=asked_at, **error_values(error))
    return Admitted(outcome, behind=behind, manifest=turn.manifest or {}, error=error)
