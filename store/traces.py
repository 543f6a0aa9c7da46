"""Hook traces: what each run of each hook did."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from everturn.errors import TurnNotFound
from everturn.ids import new_request_id
from everturn.store.columns import now
from everturn.store.locks import insert_or_ignore
from everturn.store.records import HookTrace
from everturn.store.tables import hook_traces, turns
from everturn.turns import JsonDict


def trace_rows(traces: Sequence[HookTrace]) -> list[JsonDict]:
    """The rows of the traces, with ids in their order: made once, so that a repeated transaction writes them once."""
    base, created_at = new_request_id(), now()
    return [_row(trace, f"{base}.{index:04}") | {"created_at": created_at} for index, trace in enumerate(traces)]


def insert_traces(connection: Connection, rows: Sequence[JsonDict]) -> None:
    """Raises TurnNotFound if a trace belongs to no turn."""
    wanted = {row["request_id"] for row in rows}
    known = set(connection.scalars(select(turns.c.request_id).where(turns.c.request_id.in_(wanted))))
    for request_id in sorted(wanted - known):
        raise TurnNotFound(request_id)
    insert_or_ignore(connection, hook_traces, *rows)


def _row(trace: HookTrace, trace_id: str) -> JsonDict:
    return {
        "trace_id": trace_id,
        "request_id": trace.request_id,
        "point": trace.point,
        "hook": trace.hook,
        "step": trace.step,
        "tool_call_id": trace.tool_call_id,
        "outcome": trace.outcome,
        "message": trace.message,
        "duration_ms": trace.duration_ms,
        "logs": trace.logs or None,
        "changed": trace.changed or None,
    }
