"""`finish`: every turn ends here, once. One transaction, safe to repeat."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Connection, and_, bindparam, delete, select, update

from everturn.chunks import (
    ABORT,
    ERROR,
    FINISH,
    TEXT_DELTA,
    TEXT_END,
    TEXT_START,
    TOOL_OUTPUT_ERROR,
    Event,
)
from everturn.errors import BadInput, TurnNotFound
from everturn.ids import assistant_message_id
from everturn.messages import Message, Part
from everturn.store.admission import queue_of
from everturn.store.assembly import parts_of_steps, parts_of_stream, text_part
from everturn.store.columns import AnyRow, now
from everturn.store.damage import readable
from everturn.store.events import EventLog
from everturn.store.locks import lock_thread, lock_turn, thread_of, update_thread, update_turn
from everturn.store.queue import first_of
from everturn.store.records import SETTLED_CALLS, Ended, Ending, StepRecord
from everturn.store.rows import ENDED, MESSAGE, ended_of, error_values, message_of, usage_of
from everturn.store.starting import INSERT_MESSAGES
from everturn.store.steps import stored_steps
from everturn.store.tables import drafts, messages, stream_events, tool_calls, turns
from everturn.turns import TERMINAL, JsonDict, Usage

INTERRUPTED = "the turn ended before this tool call had a result"
_KEEPS_PARTIAL = ("aborted", "error")
_FALLBACK_ERROR = "the turn failed"
_MINE: Final = turns.c.request_id == bindparam("turn")
_STATUS: Final = select(turns.c.status).where(_MINE)
_ENDED: Final = select(*ENDED).where(_MINE)
_MESSAGE: Final = select(*MESSAGE).where(messages.c.message_id == bindparam("message"))
_DELETE_DRAFT: Final = delete(drafts).where(drafts.c.request_id == bindparam("turn"))
_IS_OPEN: Final = and_(
    tool_calls.c.request_id == bindparam("turn"), *(tool_calls.c.state != state for state in sorted(SETTLED_CALLS))
)
_OPEN_CALLS: Final = (
    select(tool_calls.c.tool_call_id, tool_calls.c.step)
    .where(_IS_OPEN)
    .order_by(tool_calls.c.step, tool_calls.c.number)
)


def finish(connection: Connection, ending: Ending) -> Ended:
    """Ends the turn as `ending` says, or returns how it ended before.

    Raises TurnNotFound; BadInput for a status that ends nothing; TranscriptDamaged.
    """
    if ending.status not in TERMINAL:
        raise BadInput(f"a turn is finished as one of {', '.join(sorted(TERMINAL))}, not as {ending.status!r}")
    thread_id = thread_of(connection, ending.request_id)
    if thread_id is None:
        raise TurnNotFound(ending.request_id)
    thread = lock_thread(connection, thread_id)
    turn = lock_turn(connection, ending.request_id)
    if turn.status not in TERMINAL:
        _end(connection, thread, turn, ending)
    return _stored(connection, ending.request_id, _next(connection, thread_id, thread, turn))


def persist_message(connection: Connection, request_id: str) -> Message | None:
    """Stores what a failing turn has said so far, ahead of its end; None if that is nothing. Raises TurnNotFound,
    TranscriptDamaged."""
    thread_id = thread_of(connection, request_id)
    if thread_id is None:
        raise TurnNotFound(request_id)
    thread = lock_thread(connection, thread_id)
    turn = lock_turn(connection, request_id)
    ending = Ending(request_id, "error")
    parts = _parts(connection, turn, ending) if turn.status not in TERMINAL else []
    if parts:
        message_id, first_part = _save_message(connection, thread, turn, parts, ending, now())
        update_turn(connection, request_id, message_id=message_id, first_part=first_part)
    return _stored(connection, request_id, None).message


def ended(connection: Connection, request_id: str) -> Ended | None:
    """How a turn ended; None while it runs or if nobody knows it."""
    status = connection.scalar(_STATUS, {"turn": request_id})
    return _stored(connection, request_id, None) if status in TERMINAL else None


def _end(connection: Connection, thread: AnyRow, turn: AnyRow, ending: Ending) -> None:
    ended_at = now()
    log = EventLog(turn.request_id, turn.last_seq)
    _interrupt_calls(connection, turn, log, ended_at)
    parts = [] if ending.without_message else _parts(connection, turn, ending)
    message_id, first_part = None, 0
    if ending.without_message and (turn.first_part or turn.message_id == assistant_message_id(turn.request_id)):
        message_id, first_part = turn.message_id, turn.first_part  # what on_chat_error was shown is stored already
    elif parts:
        message_id, first_part = _save_message(connection, thread, turn, parts, ending, ended_at)
    if ending.status == "blocked":
        joined = select(turns.c.request_id).where(turns.c.superseded_by == turn.request_id, turns.c.joined)
        answered = (messages.c.request_id == turn.request_id) | messages.c.request_id.in_(joined)
        connection.execute(update(messages).where(answered, messages.c.role == "user").values(hidden=True))
        log.add(*_reply_events(ending.text))
    log.add(_end_event(turn, ending, message_id))
    log.save(
        connection,
        status=ending.status,
        stop_reason=ending.stop_reason,
        ended_at=ended_at,
        message_id=message_id,
        first_part=first_part,
        **error_values(ending.error),
    )
    connection.execute(_DELETE_DRAFT, {"turn": turn.request_id})
    if thread.running_request_id == turn.request_id:
        update_thread(connection, turn.thread_id, running_request_id=None)


def _interrupt_calls(connection: Connection, turn: AnyRow, log: EventLog, ended_at: datetime) -> None:
    rows = connection.execute(_OPEN_CALLS, {"turn": turn.request_id}).all()
    if not rows:
        return
    closed = {"state": "interrupted", "error": INTERRUPTED, "settled_at": ended_at, "run_input": None}
    connection.execute(update(tool_calls).where(_IS_OPEN), {"turn": turn.request_id, **closed})
    for row in rows:
        log.add(Event(TOOL_OUTPUT_ERROR, {"toolCallId": row.tool_call_id, "errorText": INTERRUPTED}), step=row.step)


def _parts(connection: Connection, turn: AnyRow, ending: Ending) -> list[Part]:
    if ending.status == "blocked":
        return [text_part(ending.text)] if ending.text else []
    if turn.status == "queued":
        return []
    with readable(turn.thread_id):
        steps = stored_steps(connection, turn.request_id)
        parts = parts_of_steps(steps)
        if ending.status in _KEEPS_PARTIAL and _is_open(turn, steps):
            parts += _streamed(connection, turn)
    return parts


def _is_open(turn: AnyRow, steps: list[StepRecord]) -> bool:
    return turn.current_step is not None and all(step.step != turn.current_step for step in steps)


def _streamed(connection: Connection, turn: AnyRow) -> list[Part]:
    query = select(stream_events.c.type, stream_events.c.data).where(
        stream_events.c.request_id == turn.request_id,
        stream_events.c.step == turn.current_step,
        stream_events.c.attempt == turn.current_attempt,
        stream_events.c.type.in_((TEXT_START, TEXT_DELTA)),
    )
    rows = connection.execute(query.order_by(stream_events.c.seq))
    return parts_of_stream((row.type, row.data) for row in rows)


def _save_message(
    connection: Connection,
    thread: AnyRow,
    turn: AnyRow,
    parts: list[Part],
    ending: Ending,
    ended_at: datetime,
) -> tuple[str, int]:
    """Inserts the message, or extends the one that the turn continues; its id, and the place of the turn's parts."""
    message_id = assistant_message_id(turn.request_id)
    if turn.message_id not in (None, message_id) and ending.status != "blocked":
        mine = messages.c.message_id == turn.message_id
        old: list[Part] = connection.scalar(select(messages.c.parts).where(mine)) or []
        kept = old[: turn.first_part] if turn.first_part else old
        connection.execute(update(messages).where(mine).values(parts=kept + parts))
        return turn.message_id, len(kept)
    if turn.message_id == message_id:  # persisted before its end
        connection.execute(update(messages).where(messages.c.message_id == message_id).values(parts=parts))
        return message_id, 0
    message = {
        "message_id": message_id,
        "thread_id": turn.thread_id,
        "position": thread.last_position + 1,
        "role": "assistant",
        "request_id": turn.request_id,
        "parts": parts,
        "hidden": ending.status == "blocked",
        "created_at": ended_at,
    }
    connection.execute(INSERT_MESSAGES, message)
    update_thread(connection, turn.thread_id, last_position=message["position"])
    return message_id, 0


def _reply_events(text: str | None) -> list[Event]:
    """The chunks of a reply that no model wrote."""
    if not text:
        return []
    block = {"id": "reply"}
    return [Event(TEXT_START, block), Event(TEXT_DELTA, {**block, "delta": text}), Event(TEXT_END, block)]


def _end_event(turn: AnyRow, ending: Ending, message_id: str | None) -> Event:
    if ending.status in ("completed", "blocked"):
        facts = {
            "finishReason": ending.stop_reason,
            "status": ending.status,
            "messageId": message_id,
            "usage": usage_json(usage_of(turn)),
        }
        return Event(FINISH, facts)
    if ending.status == "error":
        kind = ending.error.type if ending.error else "error"
        return Event(ERROR, {"type": kind, "errorText": ending.error.message if ending.error else _FALLBACK_ERROR})
    return Event(ABORT, {"reason": ending.reason or ending.status})


def usage_json(usage: Usage) -> JsonDict:
    """Usage in the words of the AI SDK's `finish` chunk."""
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
        "cachedInputTokens": usage.cached_tokens,
        "reasoningTokens": usage.reasoning_tokens,
        "cost": usage.cost,
    }


def _next(connection: Connection, thread_id: str, thread: AnyRow, turn: AnyRow) -> str | None:
    if thread.running_request_id not in (None, turn.request_id):
        return None
    return first_of([waiting for waiting in queue_of(connection, thread_id) if waiting.request_id != turn.request_id])


def _stored(connection: Connection, request_id: str, next_request_id: str | None) -> Ended:
    row = connection.execute(_ENDED, {"turn": request_id}).one()
    message: Message | None = None
    if row.message_id is not None:
        found = connection.execute(_MESSAGE, {"message": row.message_id}).one_or_none()
        message = message_of(found) if found is not None else None
    return ended_of(row, message, next_request_id)
