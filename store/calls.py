"""Tool calls: marked as running before the tool runs, settled once after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, bindparam, select, update

from everturn.chunks import Event
from everturn.errors import BadInput
from everturn.store.columns import AnyRow, now
from everturn.store.events import EventLog
from everturn.store.locks import lock_turn, update_turn
from everturn.store.records import SETTLED_CALLS, ToolCall, ToolOpening
from everturn.store.rows import CALL, call_of, outcome_values
from everturn.store.tables import tool_calls
from everturn.turns import TERMINAL, JsonDict

_MINE: Final = (tool_calls.c.request_id == bindparam("turn")) & (tool_calls.c.tool_call_id == bindparam("call"))
WAITING: Final = "waiting"
"""State of a call, and status of its turn, while somebody is asked."""
_WAITING_CALL: Final = (
    select(tool_calls.c.tool_call_id)
    .where(tool_calls.c.request_id == bindparam("turn"), tool_calls.c.state == WAITING)
    .limit(1)
)
_FIND: Final = select(*CALL).where(_MINE)
_UPDATE: Final = update(tool_calls).where(_MINE)


def open_call(
    connection: Connection, request_id: str, tool_call_id: str, *, idempotent: bool, activity: str, try_: int
) -> ToolOpening:
    """Decides whether an attempt may run the tool. Raises TurnNotFound; BadInput for an unknown call."""
    turn = lock_turn(connection, request_id)
    row = _find(connection, request_id, tool_call_id)
    call = call_of(row)
    if call.state in SETTLED_CALLS:
        return ToolOpening("settled", call)
    if turn.status in TERMINAL:
        return ToolOpening("superseded", call)
    if call.state == "running":
        same = row.activity == activity
        if same and row.activity_try > try_:
            return ToolOpening("superseded", call)
        if same and row.activity_try == try_:
            return ToolOpening("run", call)
        if not idempotent:
            return ToolOpening("lost", call)
    opening = {"state": "running", "activity": activity, "activity_try": try_, "started_at": now()}
    _update(connection, request_id, tool_call_id, opening)
    return ToolOpening("run", replace(call, state="running"))


def settle_call(connection: Connection, request_id: str, call: ToolCall, events: Sequence[Event]) -> ToolCall:
    """Stores the outcome of a call and its events, unless it has one; what is stored then.

    Raises TurnNotFound; BadInput for an unknown call or a state that is no outcome.
    """
    if call.state not in SETTLED_CALLS:
        allowed = ", ".join(sorted(SETTLED_CALLS))
        raise BadInput(f"a tool call is settled as one of {allowed}, not as {call.state!r}")
    turn = lock_turn(connection, request_id)
    row = _find(connection, request_id, call.tool_call_id)
    if row.state in SETTLED_CALLS or turn.status in TERMINAL:
        return call_of(row)
    _update(connection, request_id, call.tool_call_id, {**outcome_values(call), "settled_at": now()})
    log = EventLog(request_id, turn.last_seq)
    log.add(*events, step=row.step)
    log.save(connection)
    resume(connection, turn)
    return call_of(_find(connection, request_id, call.tool_call_id))


def resume(connection: Connection, turn: AnyRow) -> None:
    """A turn that waited runs again once none of its calls waits."""
    if turn.status != WAITING:
        return
    if connection.execute(_WAITING_CALL, {"turn": turn.request_id}).first() is None:
        update_turn(connection, turn.request_id, status="running")


def get_call(connection: Connection, request_id: str, tool_call_id: str) -> ToolCall:
    """Raises BadInput for an unknown call."""
    return call_of(_find(connection, request_id, tool_call_id))


def amend_call(
    connection: Connection, request_id: str, tool_call_id: str, new_input: JsonDict, run_input: JsonDict | None = None
) -> None:
    """Replaces the arguments of a call that has not run yet. Raises TurnNotFound; BadInput for an unknown call."""
    lock_turn(connection, request_id)
    row = _find(connection, request_id, tool_call_id)
    if row.state == "requested":
        asked = row.model_input if row.model_input is not None else row.input
        new = {"input": new_input, "model_input": asked, "run_input": run_input}
        _update(connection, request_id, tool_call_id, new)


def release_call(connection: Connection, request_id: str, tool_call_id: str, retries: int) -> int:
    """Counts a failed run; the call may run again unless more than `retries` failed. The number of failed runs."""
    lock_turn(connection, request_id)
    row = _find(connection, request_id, tool_call_id)
    if row.state != "running":
        return int(row.failures)
    failures = int(row.failures) + 1
    again = {"state": "requested"} if failures <= retries else {}
    _update(connection, request_id, tool_call_id, {"failures": failures, **again})
    return failures


def present_call(connection: Connection, request_id: str, call: ToolCall, events: Sequence[Event]) -> None:
    """Writes what is shown of a settled call and appends its events, once."""
    turn = lock_turn(connection, request_id)
    row = _find(connection, request_id, call.tool_call_id)
    if row.presented or turn.status in TERMINAL:
        return
    shown = {"output": call.output, "raw_output": call.raw_output, "error": call.error, "presented": True}
    _update(connection, request_id, call.tool_call_id, shown)
    log = EventLog(request_id, turn.last_seq)
    log.add(*events, step=row.step)
    log.save(connection)


def _find(connection: Connection, request_id: str, tool_call_id: str) -> AnyRow:
    row = connection.execute(_FIND, {"turn": request_id, "call": tool_call_id}).one_or_none()
    if row is None:
        raise BadInput(f"turn {request_id!r} has no tool call {tool_call_id!r}; commit its step first")
    return row


def _update(connection: Connection, request_id: str, tool_call_id: str, values: JsonDict) -> None:
    connection.execute(_UPDATE, {"turn": request_id, "call": tool_call_id, **values})
