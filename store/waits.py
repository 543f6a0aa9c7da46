"""Tool calls that wait for somebody: a person's approval, or a front end's result. The turn waits with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select, update

from everturn.chunks import Event
from everturn.store.calls import WAITING, get_call, resume
from everturn.store.columns import from_epoch
from everturn.store.events import EventLog
from everturn.store.locks import lock_turn
from everturn.store.records import SETTLED_CALLS, CallWait, ToolCall
from everturn.store.rows import pending_of
from everturn.store.tables import tool_calls, turns
from everturn.turns import TERMINAL, JsonDict, PendingCall


def open_wait(connection: Connection, request_id: str, wait: CallWait, events: Sequence[Event]) -> bool:
    """Marks the call and its turn as waiting, once; False if the call or the turn is over. Raises TurnNotFound."""
    turn = lock_turn(connection, request_id)
    call = get_call(connection, request_id, wait.tool_call_id)
    if turn.status in TERMINAL or call.state in SETTLED_CALLS:
        return False
    if call.state == WAITING:
        return True
    values = {
        "state": WAITING,
        "wait_kind": wait.kind,
        "wait_reason": wait.reason,
        "wait_until": from_epoch(wait.until),
    }
    _update_call(connection, request_id, wait.tool_call_id, values)
    log = EventLog(request_id, turn.last_seq)
    log.add(*events, step=call.step)
    log.save(connection, status=WAITING)
    return True


def approve_wait(
    connection: Connection,
    request_id: str,
    tool_call_id: str,
    new_input: JsonDict | None,
    run_input: JsonDict | None = None,
) -> ToolCall:
    """Lets a waiting call run, with other arguments if given; the call. A call that does not wait stays as it is."""
    turn = lock_turn(connection, request_id)
    call = get_call(connection, request_id, tool_call_id)
    if turn.status in TERMINAL or call.state != WAITING:
        return call
    values: JsonDict = {"state": "requested"}
    if new_input is not None:
        asked = call.model_input if call.model_input is not None else call.input
        values |= {"input": new_input, "model_input": asked, "run_input": run_input}
    _update_call(connection, request_id, tool_call_id, values)
    resume(connection, turn)
    return get_call(connection, request_id, tool_call_id)


def pending(connection: Connection, thread_id: str) -> list[PendingCall]:
    """What the thread's turns wait for, oldest first."""
    query = (
        select(*tool_calls.c)
        .join(turns, turns.c.request_id == tool_calls.c.request_id)
        .where(turns.c.thread_id == thread_id, turns.c.status == WAITING, tool_calls.c.state == WAITING)
        .order_by(tool_calls.c.requested_at, tool_calls.c.step, tool_calls.c.number)
    )
    return [pending_of(row) for row in connection.execute(query)]


def _update_call(connection: Connection, request_id: str, tool_call_id: str, values: dict[str, Any]) -> None:
    mine = (tool_calls.c.request_id == request_id) & (tool_calls.c.tool_call_id == tool_call_id)
    connection.execute(update(tool_calls).where(mine).values(**values))
