"""Reads for people and clients: heads, lists, one turn in full, the messages of a thread."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from everturn.messages import Message
from everturn.store.damage import readable
from everturn.store.records import TurnHead
from everturn.store.rows import (
    CALL,
    HEAD,
    MESSAGE,
    STEP,
    SUMMARY,
    TRACE,
    call_info_of,
    head_of,
    message_of,
    step_info_of,
    summary_of,
    trace_info_of,
)
from everturn.store.tables import hook_traces, messages, steps, threads, tool_calls, turns
from everturn.turns import TurnInfo, TurnSummary


def head(connection: Connection, request_id: str) -> TurnHead | None:
    row = connection.execute(select(*HEAD).where(turns.c.request_id == request_id)).one_or_none()
    return head_of(row) if row is not None else None


def running(connection: Connection, thread_id: str) -> str | None:
    """The turn that has the thread now."""
    query = select(threads.c.running_request_id).where(threads.c.thread_id == thread_id)
    found: str | None = connection.scalar(query)
    return found


def list_turns(connection: Connection, thread_id: str | None, status: str | None, limit: int) -> list[TurnSummary]:
    """The newest turns first."""
    wanted: list[ColumnElement[bool]] = []
    if thread_id is not None:
        wanted.append(turns.c.thread_id == thread_id)
    if status is not None:
        wanted.append(turns.c.status == status)
    newest = select(*SUMMARY).where(*wanted).order_by(turns.c.submitted_at.desc(), turns.c.request_id.desc())
    return [summary_of(row) for row in connection.execute(newest.limit(limit))]


def thread_messages(connection: Connection, thread_id: str) -> list[Message]:
    """All messages of a thread in order, hidden ones included. Raises TranscriptDamaged."""
    query = select(*MESSAGE).where(messages.c.thread_id == thread_id).order_by(messages.c.position)
    with readable(thread_id):
        return [message_of(row) for row in connection.execute(query)]


def inspect(connection: Connection, request_id: str) -> TurnInfo | None:
    extra = (turns.c.before_turn_hook_error, turns.c.attempts_failed)
    row = connection.execute(select(*SUMMARY, *extra).where(turns.c.request_id == request_id)).one_or_none()
    if row is None:
        return None
    calls = _rows(connection, CALL, tool_calls.c.request_id == request_id, tool_calls.c.step, tool_calls.c.number)
    per_step = Counter(call.step for call in calls)
    found = _rows(connection, STEP, steps.c.request_id == request_id, steps.c.step)
    traces = _rows(connection, TRACE, hook_traces.c.request_id == request_id, hook_traces.c.trace_id)
    return TurnInfo(
        turn=summary_of(row),
        steps=[step_info_of(step, per_step[step.step]) for step in found],
        tool_calls=[call_info_of(call) for call in calls],
        hook_traces=[trace_info_of(trace) for trace in traces],
        before_turn_hook_error=row.before_turn_hook_error,
        attempts_failed=row.attempts_failed,
    )


def _rows(connection: Connection, columns: Any, where: ColumnElement[bool], *order: ColumnElement[Any]) -> Any:
    return connection.execute(select(*columns).where(where).order_by(*order)).all()
