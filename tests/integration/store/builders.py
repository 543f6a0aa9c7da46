"""Short ways to make what the store takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from everturn.chunks import TEXT_DELTA, TEXT_END, TEXT_START, Chunk, Event
from everturn.store.records import Admission, Ended, Ending, StepRecord, ToolCall
from everturn.store.store import Store
from everturn.turns import TurnError, TurnStatus, Usage

LIMIT = 20.0
"""Seconds that a test waits for what should come at once."""


def admission(request_id: str = "r0", thread_id: str = "t", **given: Any) -> Admission:
    """Turns named r0, r1, … are submitted in the order of their numbers."""
    number = float(request_id[1:]) if request_id[1:].isdigit() else 0.0
    defaults: dict[str, Any] = {
        "agent": "support",
        "digest": "d",
        "policy": "queue",
        "trigger": "submit",
        "submitted_at": 1_000_000.0 + number,
        "asked_at": 1_000_000.0 + number,
        "run_id": f"run-{request_id}",
        "parts": [text(f"question {request_id}")],
    }
    return Admission(request_id=request_id, thread_id=thread_id, **{**defaults, **given})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(tool_call_id: str = "c0", **given: Any) -> ToolCall:
    defaults: dict[str, Any] = {"tool_name": "get_weather", "step": 0, "index": 0, "input": {"city": "Paris"}}
    return ToolCall(tool_call_id=tool_call_id, **{**defaults, **given})


def record(request_id: str = "r0", step: int = 0, attempt: int = 1, **given: Any) -> StepRecord:
    calls: Sequence[ToolCall] = given.get("calls", [])
    parts = [text(f"answer {step}"), *({"type": "tool-call", "toolCallId": c.tool_call_id} for c in calls)]
    defaults: dict[str, Any] = {
        "model": "openai/test",
        "parts": parts,
        "calls": [],
        "finish_reason": "stop",
        "usage": Usage(10, 5, 2, 1, 0.25),
        "duration_ms": 40,
    }
    return StepRecord(request_id=request_id, step=step, attempt=attempt, **{**defaults, **given})


def deltas(*pieces: str, block: str = "b") -> list[Event]:
    return [
        Event(TEXT_START, {"id": block}),
        *(Event(TEXT_DELTA, {"id": block, "delta": piece}) for piece in pieces),
        Event(TEXT_END, {"id": block}),
    ]


async def run_turn(store: Store, request_id: str = "r0", thread_id: str = "t", **given: Any) -> Ended:
    """A whole turn with one step."""
    assert (await store.begin(admission(request_id, thread_id, **given))).outcome == "run"
    opening = await store.open_step(request_id, 0, activity="model", try_=1)
    writer = store.writer(request_id, 0, opening.attempt)
    for event in deltas("answer ", "0"):
        writer.put(event)
    assert await writer.drain()
    assert await store.commit_step(record(request_id, attempt=opening.attempt), [Event("finish-step")])
    return await end(store, request_id)


async def end(store: Store, request_id: str = "r0", status: TurnStatus = "completed", **given: Any) -> Ended:
    if status == "completed":
        given.setdefault("stop_reason", "end_turn")
    if status == "error":
        given.setdefault("error", TurnError("provider", "the model failed"))
    return await store.finish(Ending(request_id, status, **given))


async def chunks(store: Store, request_id: str = "r0", after: int = 0) -> list[Chunk]:
    """A whole tail."""
    async with asyncio.timeout(LIMIT):
        return [chunk async for chunk in store.tail(request_id, after)]


def types(found: Sequence[Chunk]) -> list[str]:
    return [chunk.type for chunk in found]


def shown(found: Sequence[Chunk]) -> str:
    """The text that a client shows: the deltas of attempts that were not voided."""
    void = {(c.data["step"], c.data["attempt"]) for c in found if c.type == "data-reset"}
    return "".join(c.data["delta"] for c in found if c.type == TEXT_DELTA and (c.step, c.attempt) not in void)
