"""Between rows and records: the only place that knows both the columns and the frozen types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement

from everturn.checks import MAX_COUNT
from everturn.messages import Message, text_of
from everturn.store.columns import AnyRow, iso
from everturn.store.records import Ended, StepRecord, ToolCall, TurnFacts, TurnHead
from everturn.store.tables import hook_traces, messages, steps, tool_calls, turns
from everturn.turns import (
    HookTraceInfo,
    JsonDict,
    PendingCall,
    Principal,
    StepInfo,
    ToolCallInfo,
    TurnError,
    TurnSummary,
    Usage,
)

Columns = Sequence[ColumnElement[Any]]

HEAD: Final[Columns] = (
    turns.c.request_id,
    turns.c.thread_id,
    turns.c.agent,
    turns.c.digest,
    turns.c.status,
    turns.c.run_id,
    turns.c.superseded_by,
    turns.c.joined,
    turns.c.last_seq,
)
_USAGE: Final[Columns] = (
    turns.c.input_tokens,
    turns.c.output_tokens,
    turns.c.cached_tokens,
    turns.c.reasoning_tokens,
    turns.c.cost,
)
_OUTCOME: Final[Columns] = (turns.c.status, turns.c.stop_reason, turns.c.error_type, turns.c.error_message)
FACTS: Final[Columns] = (
    turns.c.request_id,
    turns.c.thread_id,
    turns.c.agent,
    turns.c.trigger,
    turns.c.body,
    turns.c.principal,
    turns.c.tenant_id,
    turns.c.manifest,
    turns.c.config,
    turns.c.state,
    turns.c.steps,
    turns.c.prompt_position,
    turns.c.started_at,
    *_OUTCOME,
    *_USAGE,
)
SUMMARY: Final[Columns] = (
    turns.c.request_id,
    turns.c.thread_id,
    turns.c.agent,
    turns.c.submitted_at,
    turns.c.started_at,
    turns.c.ended_at,
    turns.c.steps,
    turns.c.superseded_by,
    turns.c.joined,
    *_OUTCOME,
    *_USAGE,
)
ENDED: Final[Columns] = (
    turns.c.request_id,
    turns.c.thread_id,
    turns.c.steps,
    turns.c.message_id,
    turns.c.output,
    turns.c.superseded_by,
    turns.c.joined,
    turns.c.started_at,
    *_OUTCOME,
    *_USAGE,
)
MESSAGE: Final[Columns] = (
    messages.c.message_id,
    messages.c.role,
    messages.c.parts,
    messages.c.request_id,
    messages.c["metadata"],
    messages.c.hidden,
    messages.c.created_at,
)
STEP: Final[Columns] = tuple(steps.c)
CALL: Final[Columns] = tuple(tool_calls.c)
TRACE: Final[Columns] = tuple(hook_traces.c)


def usage_of(row: AnyRow) -> Usage:
    return Usage(row.input_tokens, row.output_tokens, row.cached_tokens, row.reasoning_tokens, row.cost)


def usage_values(usage: Usage) -> JsonDict:
    """A sum that no column takes stays at the largest number: a server that counts wrongly must not stop a turn."""
    counts = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    return {name: min(getattr(usage, name), MAX_COUNT) for name in counts} | {"cost": usage.cost}


def error_of(row: AnyRow) -> TurnError | None:
    return TurnError(row.error_type, row.error_message or "") if row.error_type is not None else None


def error_values(error: TurnError | None) -> JsonDict:
    return {"error_type": error.type if error else None, "error_message": error.message if error else None}


def principal_of(stored: JsonDict | None) -> Principal:
    if not stored:
        return Principal()
    return Principal(
        id=stored.get("id"),
        email=stored.get("email"),
        is_anonymous=bool(stored.get("is_anonymous")),
        roles=tuple(stored.get("roles", ())),
        metadata=stored.get("metadata") or {},
    )


def principal_value(principal: Principal | None) -> JsonDict | None:
    if principal is None:
        return None
    return {
        "id": principal.id,
        "email": principal.email,
        "is_anonymous": principal.is_anonymous,
        "roles": list(principal.roles),
        "metadata": principal.metadata,
    }


def head_of(row: AnyRow) -> TurnHead:
    return TurnHead(
        request_id=row.request_id,
        thread_id=row.thread_id,
        agent=row.agent,
        digest=row.digest,
        status=row.status,
        run_id=row.run_id,
        answered_by=row.superseded_by if row.joined else None,
        last_seq=row.last_seq,
    )


def facts_of(row: AnyRow) -> TurnFacts:
    return TurnFacts(
        request_id=row.request_id,
        thread_id=row.thread_id,
        agent=row.agent,
        trigger=row.trigger,
        status=row.status,
        body=row.body,
        principal=principal_of(row.principal),
        tenant_id=row.tenant_id,
        manifest=row.manifest or {},
        config=row.config or {},
        state=row.state or {},
        steps=row.steps,
        usage=usage_of(row),
        stop_reason=row.stop_reason,
        error=error_of(row),
        begun=row.started_at is not None,
    )


def summary_of(row: AnyRow) -> TurnSummary:
    return TurnSummary(
        request_id=row.request_id,
        thread_id=row.thread_id,
        agent=row.agent,
        status=row.status,
        stop_reason=row.stop_reason,
        submitted_at=row.submitted_at.isoformat(),
        started_at=iso(row.started_at),
        ended_at=iso(row.ended_at),
        usage=usage_of(row),
        steps=row.steps,
        error=error_of(row),
        superseded_by=row.superseded_by,
        joined=row.joined,
    )


def ended_of(row: AnyRow, message: Message | None, next_request_id: str | None) -> Ended:
    return Ended(
        request_id=row.request_id,
        thread_id=row.thread_id,
        status=row.status,
        stop_reason=row.stop_reason,
        error=error_of(row),
        message=message,
        usage=usage_of(row),
        steps=row.steps,
        next_request_id=next_request_id,
        output=row.output,
        superseded_by=row.superseded_by,
        joined=row.joined,
        begun=row.started_at is not None,
    )


def message_of(row: AnyRow) -> Message:
    return Message(
        row.message_id, row.role, row.parts, row.request_id, row.metadata or {}, row.hidden, iso(row.created_at)
    )


def step_of(row: AnyRow, calls: Sequence[ToolCall]) -> StepRecord:
    return StepRecord(
        request_id=row.request_id,
        step=row.step,
        attempt=row.attempt,
        model=row.model,
        parts=row.parts,
        calls=list(calls),
        finish_reason=row.finish_reason,
        usage=usage_of(row),
        duration_ms=row.duration_ms,
        interrupted=row.interrupted,
        response=row.response or {},
    )


def step_values(record: StepRecord, created_at: datetime) -> JsonDict:
    return {
        "request_id": record.request_id,
        "step": record.step,
        "attempt": record.attempt,
        "model": record.model,
        "parts": record.parts,
        "finish_reason": record.finish_reason,
        "duration_ms": record.duration_ms,
        "interrupted": record.interrupted,
        "response": record.response or None,
        "created_at": created_at,
        **usage_values(record.usage),
    }


def call_of(row: AnyRow) -> ToolCall:
    return ToolCall(
        tool_call_id=row.tool_call_id,
        tool_name=row.tool_name,
        step=row.step,
        index=row.number,
        input=row.input,
        raw_input=row.raw_input,
        provider=row.provider,
        state=row.state,
        output=row.output,
        raw_output=row.raw_output,
        model_input=row.model_input,
        run_input=row.run_input,
        error=row.error,
        duration_ms=row.duration_ms,
    )


def outcome_values(call: ToolCall) -> JsonDict:
    """The columns that a settlement writes."""
    return {
        "state": call.state,
        "input": call.input,
        "model_input": call.model_input,
        "run_input": None,
        "output": call.output,
        "raw_output": call.raw_output,
        "error": call.error,
        "duration_ms": call.duration_ms,
    }


def call_values(request_id: str, call: ToolCall) -> JsonDict:
    return {
        "request_id": request_id,
        "tool_call_id": call.tool_call_id,
        "tool_name": call.tool_name,
        "step": call.step,
        "number": call.index,
        "raw_input": call.raw_input,
        "provider": call.provider,
        **outcome_values(call),
        "run_input": call.run_input,
    }


def step_info_of(row: AnyRow, calls: int) -> StepInfo:
    return StepInfo(
        step=row.step,
        attempt=row.attempt,
        model=row.model,
        finish_reason=row.finish_reason,
        text=text_of(row.parts),
        usage=usage_of(row),
        duration_ms=row.duration_ms,
        tool_calls=calls,
        interrupted=row.interrupted,
    )


def call_info_of(row: AnyRow) -> ToolCallInfo:
    return ToolCallInfo(
        step=row.step,
        tool_call_id=row.tool_call_id,
        tool_name=row.tool_name,
        state=row.state,
        input=row.input if row.input is not None else row.raw_input,
        output=row.output,
        error=row.error,
        duration_ms=row.duration_ms,
    )


def pending_of(row: AnyRow) -> PendingCall:
    return PendingCall(
        request_id=row.request_id,
        tool_call_id=row.tool_call_id,
        tool_name=row.tool_name,
        kind=row.wait_kind,
        reason=row.wait_reason or "",
        input=row.input,
        expires_at=row.wait_until.isoformat(),
    )


def trace_info_of(row: AnyRow) -> HookTraceInfo:
    return HookTraceInfo(
        point=row.point,
        hook=row.hook,
        step=row.step,
        outcome=row.outcome,
        message=row.message,
        duration_ms=row.duration_ms,
        logs=row.logs or [],
        changed=row.changed or [],
        tool_call_id=row.tool_call_id,
    )
