"""Tells an operator of model calls and tools, where the turn's telemetry asks for it: as events, and as spans where
OpenTelemetry is installed."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from everturn.activities.events import STEP_FAILED, STEP_FINISHED, TOOL_FINISHED, tell
from everturn.activities.gen_ai import (
    Attributes,
    input_attributes,
    model_name,
    output_attributes,
    request_attributes,
    response_attributes,
    tool_attributes,
)
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.types import ModelRequest
from everturn.hooks.telemetry import Telemetry
from everturn.store.records import StepRecord, ToolCall, TurnFacts

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


def step_finished(telemetry: Telemetry, turn: TurnFacts, record: StepRecord, request: ModelRequest) -> None:
    usage = record.usage
    tell(
        STEP_FINISHED,
        **_common(telemetry, turn),
        step=record.step,
        attempt=record.attempt,
        model=record.model,
        finish_reason=record.finish_reason,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost=usage.cost,
        duration_ms=record.duration_ms,
        interrupted=record.interrupted,
    )
    attributes = request_attributes(record.model, request) | response_attributes(record)
    attributes |= {"everturn.step": record.step, "everturn.attempt": record.attempt}
    if telemetry.record_inputs:
        attributes |= input_attributes(request)
    if telemetry.record_outputs:
        attributes |= output_attributes(record)
    _span(telemetry, turn, f"chat {model_name(record.model)}", "client", attributes, record.duration_ms)


@dataclass(frozen=True, slots=True)
class Place:
    """Which attempt of which step, with which model."""

    step: int
    attempt: int
    model: str


def step_failed(telemetry: Telemetry, turn: TurnFacts, place: Place, failure: ModelFailure, began: float) -> None:
    """began: when the attempt did, by time.monotonic()."""
    duration_ms = round((time.monotonic() - began) * 1000)
    tell(STEP_FAILED, **_common(telemetry, turn), **asdict(place), error=failure.code, duration_ms=duration_ms)
    attributes = request_attributes(place.model, None)
    attributes |= {"everturn.step": place.step, "everturn.attempt": place.attempt}
    name = f"chat {model_name(place.model)}"
    _span(telemetry, turn, name, "client", attributes, duration_ms, failure.code, failure.message)


def tool_finished(telemetry: Telemetry, turn: TurnFacts, call: ToolCall) -> None:
    """call: as it is stored, with its outcome."""
    duration_ms = call.duration_ms or 0
    tell(
        TOOL_FINISHED,
        **_common(telemetry, turn),
        step=call.step,
        tool_name=call.tool_name,
        tool_call_id=call.tool_call_id,
        state=call.state,
        duration_ms=duration_ms,
    )
    attributes = tool_attributes(call, inputs=telemetry.record_inputs, outputs=telemetry.record_outputs)
    attributes |= {"everturn.step": call.step}
    error = call.state if call.error is not None else None
    _span(telemetry, turn, f"execute_tool {call.tool_name}", "internal", attributes, duration_ms, error)


def _common(telemetry: Telemetry, turn: TurnFacts) -> dict[str, object]:
    return {
        "request_id": turn.request_id,
        "thread_id": turn.thread_id,
        "agent": turn.agent,
        "function_id": telemetry.function_id,
        "attributes": telemetry.attributes,
    }


def _span(
    telemetry: Telemetry,
    turn: TurnFacts,
    name: str,
    kind: Literal["client", "internal"],
    attributes: Attributes,
    duration_ms: int,
    error: str | None = None,
    message: str | None = None,
) -> None:
    """A span that ends now, under the one that is current: the activity's, with Temporal's tracing interceptor."""
    tracer = _tracer()
    if tracer is None:
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode

    ended = time.time_ns()
    common: Attributes = {
        "gen_ai.agent.name": turn.agent,
        "gen_ai.conversation.id": turn.thread_id,
        "everturn.request_id": turn.request_id,
    }
    if telemetry.function_id is not None:
        common["everturn.function_id"] = telemetry.function_id
    span = tracer.start_span(
        name,
        kind=SpanKind.CLIENT if kind == "client" else SpanKind.INTERNAL,
        attributes={**telemetry.attributes, **common, **attributes},
        start_time=ended - duration_ms * 1_000_000,
    )
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR, message))
    span.end(ended)


@lru_cache(maxsize=1)
def _tracer() -> Tracer | None:
    """None if OpenTelemetry is not installed. It may be set up before or after."""
    try:
        from opentelemetry.trace import get_tracer
    except ImportError:
        return None
    return get_tracer("everturn")
