"""`begin`: a turn asks for its thread. One transaction, safe to repeat; a queued turn that wakes asks again."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from everturn.chunks import ERROR, QUEUED, START, Event
from everturn.errors import BadInput, ThreadBusy
from everturn.ids import assistant_message_id, user_message_id
from everturn.messages import Part
from everturn.store.columns import AnyRow, from_epoch, now
from everturn.store.events import EventLog
from everturn.store.locks import (
    find_turn,
    insert_or_ignore,
    lock_thread,
    lock_turn,
    thread_of,
    update_thread,
    update_turn,
)
from everturn.store.queue import Waiting, ahead_of
from everturn.store.records import Admission, Admitted
from everturn.store.room import lacks_room
from everturn.store.rows import error_values, principal_value
from everturn.store.tables import IS_QUEUED, drafts, messages, stream_events, threads, turns
from everturn.turns import TERMINAL, JsonDict, TurnError

BUSY: Final = "ThreadBusy"
FULL: Final = "TooBusy"
_QUEUE: Final = select(turns.c.request_id, turns.c.submitted_at, turns.c.after_request_id).where(
    turns.c.thread_id == bindparam("thread"), IS_QUEUED
)


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
    rows = connection.execute(_QUEUE, {"thread": thread_id})
    return [Waiting(row.request_id, row.submitted_at, row.after_request_id) for row in rows]


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
        "body": admission.body,
        "manifest": admission.manifest,
        "config": admission.config,
        "submitted_at": from_epoch(admission.submitted_at),
        "principal_id": admission.principal.id if admission.principal else None,
        "events_pruned": False,
        **dict.fromkeys(_COUNTERS, 0),
    }


_COUNTERS = (
    "steps",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "attempts_failed",
    "first_part",
    "prompt_position",
    "model_ms",
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
    if admission.withdrawn:
        return Admitted("withdrawn", manifest=turn.manifest or {})
    behind = _blocker(connection, thread, turn, admission)
    if behind is not None and admission.policy == "reject":
        busy = TurnError(BUSY, str(ThreadBusy(turn.thread_id, thread.running_request_id or behind)))
        return _refuse(connection, turn, "busy", busy, asked_at, behind)
    full = lacks_room(connection, admission, waits=behind is not None) if is_new else None
    if full is not None:
        return _refuse(connection, turn, "full", TurnError(FULL, str(full)), asked_at)
    if behind is None:
        return _run(connection, thread, turn, admission, asked_at)
    return _queue(connection, turn, admission, behind)


def _adopt(connection: Connection, turn: AnyRow, admission: Admission) -> Admitted:
    if turn.run_id != admission.run_id:
        update_turn(connection, turn.request_id, run_id=admission.run_id)
    return Admitted("run", manifest=turn.manifest or {})


def _blocker(connection: Connection, thread: AnyRow, turn: AnyRow, admission: Admission) -> str | None:
    """The turn to wait for: the one that must come first, or the nearest in the queue, or the running one."""
    if admission.after is not None and not _is_settled(connection, turn.thread_id, admission.after):
        return admission.after
    me = Waiting(turn.request_id, turn.submitted_at, admission.after)
    others = [other for other in queue_of(connection, turn.thread_id) if other.request_id != turn.request_id]
    ahead = ahead_of(me, others)
    if ahead:
        return ahead[-1].request_id
    running: str | None = thread.running_request_id
    return running


def _is_settled(connection: Connection, thread_id: str, request_id: str) -> bool:
    query = select(turns.c.status, turns.c.thread_id).where(turns.c.request_id == request_id)
    row = connection.execute(query).one_or_none()
    return row is not None and (row.thread_id != thread_id or row.status in TERMINAL)


def _queue(connection: Connection, turn: AnyRow, admission: Admission, behind: str) -> Admitted:
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


def _run(connection: Connection, thread: AnyRow, turn: AnyRow, admission: Admission, asked_at: datetime) -> Admitted:
    manifest = turn.manifest if turn.manifest is not None else admission.manifest or {}
    continued = _message_to_continue(connection, turn)
    if turn.trigger == "continue" and continued is None:
        return Admitted("nothing_to_continue", manifest=manifest)
    position: int = thread.last_position
    parts = _take_parts(connection, admission)
    if parts is not None:
        position += 1
        _insert_user_message(connection, admission, parts, position, asked_at)
    update_thread(connection, turn.thread_id, running_request_id=turn.request_id, last_position=position)
    log = EventLog(turn.request_id, turn.last_seq)
    message_id = continued or assistant_message_id(turn.request_id)
    facts = {"messageId": message_id, "requestId": turn.request_id, "threadId": turn.thread_id}
    log.add(Event(START, facts))
    log.save(
        connection,
        status="running",
        started_at=asked_at,
        run_id=admission.run_id,
        after_request_id=admission.after,
        manifest=manifest,
        message_id=continued,
        prompt_position=position,
    )
    return Admitted("run", manifest=manifest)


def _take_parts(connection: Connection, admission: Admission) -> list[Part] | None:
    if not admission.draft:
        return admission.parts
    of_turn = drafts.c.request_id == admission.request_id
    mine = of_turn & (drafts.c.digest == admission.digest)
    parts: list[Part] | None = connection.scalar(select(drafts.c.parts).where(mine))
    if parts is None:
        raise BadInput(
            f"the message of turn {admission.request_id!r} was announced as a draft and is not in the store; "
            "submit the turn again with the same store as the worker's"
        )
    connection.execute(delete(drafts).where(of_turn))
    return parts


def _insert_user_message(
    connection: Connection, admission: Admission, parts: list[Part], position: int, asked_at: datetime
) -> None:
    message = {
        "message_id": user_message_id(admission.request_id),
        "thread_id": admission.thread_id,
        "position": position,
        "role": "user",
        "request_id": admission.request_id,
        "parts": parts,
        "metadata": admission.message_metadata or None,
        "hidden": False,
        "created_at": asked_at,
    }
    connection.execute(insert(messages), message)


def _message_to_continue(connection: Connection, turn: AnyRow) -> str | None:
    """The thread's newest message, if this turn continues it."""
    if turn.trigger != "continue":
        return None
    newest = (
        select(messages.c.message_id, messages.c.role, messages.c.hidden)
        .where(messages.c.thread_id == turn.thread_id)
        .order_by(messages.c.position.desc())
        .limit(1)
    )
    row = connection.execute(newest).one_or_none()
    return row.message_id if row is not None and row.role == "assistant" and not row.hidden else None
