"""Model steps: attempts are numbered, the newest number is the fence, and a step is written once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, bindparam, exists, func, insert, select, update

from everturn.chunks import RESET, RETRYING, Event
from everturn.errors import BadInput
from everturn.ids import new_request_id
from everturn.store.columns import AnyRow, now
from everturn.store.damage import check_parts
from everturn.store.encoding import clean_text
from everturn.store.events import EventLog, PreparedEvent
from everturn.store.locks import lock_turn
from everturn.store.records import SETTLED_CALLS, Opening, StepRecord, ToolCall
from everturn.store.rows import (
    CALL,
    STEP,
    call_of,
    call_values,
    error_values,
    step_of,
    step_values,
    usage_of,
    usage_values,
)
from everturn.store.tables import hook_traces, step_attempts, steps, stream_events, tool_calls
from everturn.turns import TERMINAL, JsonDict, TurnError

_CALLS: Final = (
    select(*CALL).where(tool_calls.c.request_id == bindparam("turn")).order_by(tool_calls.c.step, tool_calls.c.number)
)
_CALLS_OF_STEP: Final = _CALLS.where(tool_calls.c.step == bindparam("step"))
_STEPS: Final = select(*STEP).where(steps.c.request_id == bindparam("turn")).order_by(steps.c.step)
_STEP: Final = _STEPS.where(steps.c.step == bindparam("step"))
_CALL_IDS: Final = select(tool_calls.c.tool_call_id).where(tool_calls.c.request_id == bindparam("turn"))
_INSERT_STEP: Final = insert(steps)
_INSERT_CALLS: Final = insert(tool_calls)
_INSERT_ATTEMPT: Final = insert(step_attempts)
_ATTEMPTS: Final = (
    select(
        step_attempts.c.attempt,
        step_attempts.c.activity,
        step_attempts.c.activity_try,
        step_attempts.c.failed_at,
        step_attempts.c.gave_up,
        step_attempts.c.next_model,
    )
    .where(step_attempts.c.request_id == bindparam("turn"), step_attempts.c.step == bindparam("step"))
    .order_by(step_attempts.c.attempt)
)


def stored_steps(connection: Connection, request_id: str) -> list[StepRecord]:
    """The finished steps of a turn, in order, each with its calls in order."""
    calls: dict[int, list[ToolCall]] = {}
    for row in connection.execute(_CALLS, {"turn": request_id}):
        calls.setdefault(row.step, []).append(call_of(row))
    found = [step_of(row, calls.get(row.step, [])) for row in connection.execute(_STEPS, {"turn": request_id})]
    for record in found:
        check_parts(record.parts, "step", record.step)
    return found


def open_step(connection: Connection, request_id: str, step: int, *, activity: str, try_: int) -> Opening:
    """Gives an attempt its number, unless the step is stored or a later try has begun. Raises TurnNotFound."""
    turn = lock_turn(connection, request_id)
    if turn.status in TERMINAL:
        return Opening(0, superseded=True)
    stored = _stored_step(connection, turn, step)
    if stored is not None:
        return Opening(stored.attempt, stored=stored)
    attempts = _attempts(connection, turn, step)
    tries = _tries(attempts)
    last: int = attempts[-1].attempt if attempts else 0
    mine = max((a for a in attempts if a.activity == activity), key=lambda a: a.activity_try, default=None)
    if mine is not None and mine.activity_try > try_:
        return Opening(mine.attempt, superseded=True)
    if mine is not None and mine.activity_try == try_:
        return replace(tries, attempt=mine.attempt, superseded=mine.attempt != last)
    _insert_attempt(connection, turn, step, last + 1, activity, try_)
    return replace(tries, attempt=last + 1)


def _tries(attempts: Sequence[AnyRow]) -> Opening:
    """What the attempts before came to: models given up, and failures of the model that is in use now.

    A model that a hook chose has no attempts of its own: it goes on counting where the one before it ended.
    """
    ends = [number for number, attempt in enumerate(attempts) if attempt.gave_up and attempt.next_model is None]
    current = attempts[ends[-1] + 1 :] if ends else attempts
    failures = sum(1 for attempt in current if attempt.failed_at is not None)
    chosen = tuple(attempt.next_model for attempt in current if attempt.next_model is not None)
    return Opening(0, failures=failures, fallback=len(ends), chosen=chosen)


def commit_step(
    connection: Connection, record: StepRecord, events: Sequence[Event], streamed: Sequence[PreparedEvent] = ()
) -> bool:
    """Writes the step, its calls, usage and last events; False if the attempt is fenced. Raises TurnNotFound.

    streamed: what the attempt has streamed and no batch has written yet; it comes before `events`.
    """
    turn = lock_turn(connection, record.request_id)
    stored = _stored_step(connection, turn, record.step)
    if stored is not None:
        return stored.attempt == record.attempt
    opened = (turn.current_step, turn.current_attempt)
    if turn.status in TERMINAL or opened != (record.step, record.attempt):
        return False
    _check_call_ids(connection, turn, record)
    written_at = now()
    connection.execute(_INSERT_STEP, step_values(record, written_at))
    if record.calls:
        connection.execute(_INSERT_CALLS, [_new_call(record, call, written_at) for call in record.calls])
    log = EventLog(record.request_id, turn.last_seq)
    log.add_prepared(streamed, step=record.step, attempt=record.attempt)
    log.add(*events, step=record.step, attempt=record.attempt)
    output = {} if record.output is None else {"output": record.output}
    sums = {"steps": turn.steps + 1, "model_ms": turn.model_ms + record.duration_ms}
    log.save(connection, **sums, **usage_values(usage_of(turn) + record.usage), **output)
    return True


def fail_attempt(
    connection: Connection,
    request_id: str,
    step: int,
    attempt: int,
    *,
    error: TurnError,
    retry_in: float | None,
    detail: str,
    gave_up: bool = False,
    next_model: str | None = None,
) -> int:
    """Notes that an attempt failed, once; the number of failed attempts of the step. Raises TurnNotFound."""
    turn = lock_turn(connection, request_id)
    failed_at = now()
    mine = (step_attempts.c.request_id == request_id) & (step_attempts.c.step == step)
    noted = connection.execute(
        update(step_attempts)
        .where(mine, step_attempts.c.attempt == attempt, step_attempts.c.failed_at.is_(None))
        .values(failed_at=failed_at, gave_up=gave_up, next_model=next_model, **error_values(error))
    )
    if noted.rowcount:
        log = EventLog(request_id, turn.last_seq)
        fenced = turn.status in TERMINAL or (step, attempt) < (turn.current_step, turn.current_attempt)
        if retry_in is not None and not fenced:
            facts = {"step": step, "attempt": attempt, "error": error.message, "retryIn": retry_in}
            facts |= {"model": next_model} if next_model is not None else {}
            log.add(Event(RETRYING, facts), step=step, attempt=attempt)
        log.save(connection, attempts_failed=turn.attempts_failed + 1)
        _trace_provider(connection, request_id, step, attempt, error, detail)
    count = select(func.count()).where(mine, step_attempts.c.failed_at.is_not(None))
    return connection.scalar(count) or 0


def _stored_step(connection: Connection, turn: AnyRow, step: int) -> StepRecord | None:
    if step >= turn.steps:  # steps are stored in order, each once
        return None
    wanted = {"turn": turn.request_id, "step": step}
    row = connection.execute(_STEP, wanted).one_or_none()
    if row is None:
        return None
    return step_of(row, [call_of(call) for call in connection.execute(_CALLS_OF_STEP, wanted)])


def _attempts(connection: Connection, turn: AnyRow, step: int) -> Sequence[AnyRow]:
    if turn.current_step is None or turn.current_step < step:
        return []
    return connection.execute(_ATTEMPTS, {"turn": turn.request_id, "step": step}).all()


def _insert_attempt(connection: Connection, turn: AnyRow, step: int, attempt: int, activity: str, try_: int) -> None:
    opened = {
        "request_id": turn.request_id,
        "step": step,
        "attempt": attempt,
        "opened_at": now(),
        "gave_up": False,
    }
    connection.execute(_INSERT_ATTEMPT, {**opened, "activity": activity, "activity_try": try_})
    log = EventLog(turn.request_id, turn.last_seq)
    # Each opening voids the one before it, so only that one can have left text that readers still show.
    if attempt > 1 and _wrote_content(connection, turn.request_id, step, attempt - 1):
        log.add(Event(RESET, {"step": step, "attempt": attempt - 1}), step=step, attempt=attempt)
    log.save(connection, current_step=step, current_attempt=attempt)


def _wrote_content(connection: Connection, request_id: str, step: int, attempt: int) -> bool:
    content = exists().where(
        stream_events.c.request_id == request_id,
        stream_events.c.step == step,
        stream_events.c.attempt == attempt,
        stream_events.c.type.not_in((RESET, RETRYING)),
    )
    return bool(connection.scalar(select(content)))


def _check_call_ids(connection: Connection, turn: AnyRow, record: StepRecord) -> None:
    ids = [clean_text(call.tool_call_id) for call in record.calls]  # as they are stored
    if not ids:
        return
    taken = set(connection.scalars(_CALL_IDS, {"turn": record.request_id})) if turn.steps else set[str]()
    twice = next((call_id for call_id in ids if ids.count(call_id) > 1 or call_id in taken), None)
    if twice is not None:
        raise BadInput(
            f"the tool call id {twice!r} is used twice in turn {record.request_id!r}; "
            "give each call of a turn an id of its own"
        )


def _new_call(record: StepRecord, call: ToolCall, written_at: Any) -> JsonDict:
    settled_at = written_at if call.state in SETTLED_CALLS else None
    times = {"requested_at": written_at, "settled_at": settled_at}
    return call_values(record.request_id, call) | {"step": record.step, "failures": 0, "presented": False} | times


def _trace_provider(
    connection: Connection, request_id: str, step: int, attempt: int, error: TurnError, detail: str
) -> None:
    connection.execute(
        insert(hook_traces).values(
            trace_id=new_request_id(),
            request_id=request_id,
            point="model_step",
            hook="provider",
            step=step,
            outcome="error",
            message=detail or error.message,
            duration_ms=0,
            logs=[{"level": "error", "message": str(error), "data": {"attempt": attempt}}],
            created_at=now(),
        )
    )
