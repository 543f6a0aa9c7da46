"""Stored facts as the author's hooks see them."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence

from temporalio import activity

from everturn.hooks.contexts import StepFacts, TurnRef
from everturn.hooks.registry import BoundHook
from everturn.messages import text_of
from everturn.store.records import StepRecord, ToolCall, TurnFacts
from everturn.turns import JsonDict


def turn_ref(turn: TurnFacts, point: str, place: str = "", timeout: float = 0.0) -> TurnRef:
    """The common facts for one hook run. place: step or tool call, part of the idempotency key."""
    key = ":".join(part for part in (turn.request_id, point, place) if part)
    return TurnRef(
        request_id=turn.request_id,
        thread_id=turn.thread_id,
        agent=turn.agent,
        principal=turn.principal,
        tenant_id=turn.tenant_id,
        trigger=turn.trigger,
        continuation=turn.trigger == "continue",
        attempt=activity.info().attempt,
        deadline=time.time() + timeout,
        idempotency_key=key,
        body=copy.deepcopy(turn.body),
        state=copy.deepcopy(turn.state),
    )


def hook_ref(turn: TurnFacts, hook: BoundHook, place: str = "") -> TurnRef:
    """The common facts for one run of `hook`. Each hook has keys of its own: two that call the same service differ."""
    return turn_ref(turn, hook.point, f"{place}:{hook.name}" if place else hook.name, hook.timeout)


def step_facts(record: StepRecord, tools: Sequence[JsonDict] = ()) -> StepFacts:
    """A stored step as hooks see it. tools: what the model was offered."""
    response = dict(record.response)
    return StepFacts(
        step=record.step,
        text=text_of(record.parts),
        reasoning="".join(str(p.get("text", "")) for p in record.parts if p.get("type") == "reasoning"),
        files=[part for part in record.parts if part.get("type") == "file"],
        sources=[part for part in record.parts if part.get("type") == "source-url"],
        tool_calls=[_asked(call) for call in record.calls],
        tool_results=[_result(call) for call in record.calls],
        finish_reason=record.finish_reason,
        usage=record.usage,
        warnings=list(response.pop("warnings", [])),
        request={"model": record.model, "tools": [tool["function"]["name"] for tool in tools]},
        provider_metadata=dict(response.pop("provider_metadata", {})),
        response=response,
        attempt=record.attempt,
        duration_ms=record.duration_ms,
    )


def _asked(call: ToolCall) -> JsonDict:
    given = call.model_input if call.model_input is not None else call.input
    return {"tool_call_id": call.tool_call_id, "tool_name": call.tool_name, "input": given, "raw_input": call.raw_input}


def _result(call: ToolCall) -> JsonDict:
    return {
        "tool_call_id": call.tool_call_id,
        "tool_name": call.tool_name,
        "state": call.state,
        "output": call.output,
        "error": call.error,
    }
