"""Every field of every context, as a hook finds it on a real turn. One system runs all turns; each test looks at one
field."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn import Agent, Principal, ToolContext, Usage, tool
from everturn.hooks.points import HOOK_POINTS
from everturn.testing import ModelError, Reply, ScriptedModel, call, running
from tests.integration.hooks.authors import add, hooks

PRINCIPAL = Principal("u1", "u1@example.com", False, ("admin",), {"plan": "pro"})
Seen = dict[str, list[Any]]
Check = Callable[[Any], bool]
MODEL = ScriptedModel(
    Reply(calls=(call("act", n=3), call("add", a=1, b=2)), reasoning="Hm."),
    Reply("It is done."),
    when={"refuse": ModelError(400, "no")},
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def seen(client: Client) -> AsyncIterator[Seen]:
    """The contexts of every point (and of a tool), in order: two turns of one thread, then one that fails."""
    found: Seen = defaultdict(list)

    def noting(point: str) -> Any:
        async def note(self: object, *arguments: Any) -> None:
            found[point].append(arguments[-1])

        return note

    @tool
    async def act(n: int, ctx: ToolContext) -> str:
        """Acts."""
        found["tool"].append(ctx)
        return f"acted {n}"

    given = {
        "name": "seen",
        "model": "openai/gpt-4o-mini",
        "system": "Be kind.",
        "temperature": 0.5,
        "tools": (act, add),
        "hooks": (hooks("Watch", **{point: noting(point) for point in HOOK_POINTS}),),
    }
    async with running(type("Seen", (Agent,), given)(), model=MODEL, client=client) as system:
        facts: dict[str, Any] = {"principal": PRINCIPAL, "tenant_id": "acme", "body": {"ticket": 7}}
        unique = uuid.uuid4().hex  # Temporal is shared, also by another setup of this fixture
        await system.run_turn("do it", thread_id="t", request_id=f"r1-{unique}", **facts)
        await system.run_turn("refuse it", thread_id="t", request_id=f"r2-{unique}", **facts)
        yield dict(found)


COMMON: dict[str, Check] = {
    "request_id": lambda c: c.request_id.startswith(("r1-", "r2-")),
    "thread_id": lambda c: c.thread_id == "t",
    "agent": lambda c: c.agent == "seen",
    "principal": lambda c: c.principal == PRINCIPAL,
    "tenant_id": lambda c: c.tenant_id == "acme",
    "trigger": lambda c: c.trigger == "submit",
    "continuation": lambda c: c.continuation is False,
    "attempt": lambda c: c.attempt == 1,
    "deadline": lambda c: time.time() - 120 < c.deadline < time.time() + 120,
    "idempotency_key": lambda c: c.idempotency_key.startswith(c.request_id),
    "body": lambda c: c.body == {"ticket": 7},
    "state": lambda c: c.state == {},
    "log": lambda c: c.log("a line") is None,
}


@pytest.mark.parametrize("field", COMMON)
async def test_every_context_has(seen: Seen, field: str) -> None:
    assert set(seen) == {*HOOK_POINTS, "tool"}
    wrong = [point for point, contexts in seen.items() if not all(map(COMMON[field], contexts))]
    assert wrong == []


FIELDS: dict[str, dict[str, Check]] = {
    "before_turn": {
        "system": lambda c: c.system == "Be kind.",
        "messages": lambda c: c.messages == [{"role": "user", "content": "do it"}],
        "tools": lambda c: (c.tools["add"].description, c.tools["add"].schema) == ("Adds two numbers.", add.schema),
        "model": lambda c: c.model == "openai/gpt-4o-mini",
        "temperature": lambda c: c.temperature == 0.5,
    },
    "before_step": {
        "step": lambda c: c.step == 0,
        "steps": lambda c: c.steps == (),
        "model": lambda c: c.model == "openai/gpt-4o-mini",
        "messages": lambda c: c.messages == [{"role": "user", "content": "do it"}],
    },
    "on_chunk": {"step": lambda c: c.step == 0},
    "before_tool_call": {
        "tool_name": lambda c: c.tool_name in ("act", "add"),
        "input": lambda c: c.input in ({"n": 3}, {"a": 1, "b": 2}),
        "tool_call_id": lambda c: c.tool_call_id.startswith("call_"),
        "step": lambda c: c.step == 0,
        "messages": lambda c: c.messages[0] == {"role": "user", "content": "do it"},
        "cancelled": lambda c: c.cancelled.is_set() is False,
    },
    "after_tool_call": {
        "tool_name": lambda c: c.tool_name in ("act", "add"),
        "input": lambda c: c.input in ({"n": 3}, {"a": 1, "b": 2}),
        "model_input": lambda c: c.model_input == c.input,
        "output": lambda c: c.output in ("acted 3", 3),
        "error": lambda c: c.error is None,
        "success": lambda c: c.success is True,
        "duration_ms": lambda c: c.duration_ms >= 0,
    },
    "on_step_finish": {
        "step": lambda c: c.step == 0,
        "text": lambda c: c.text == "",
        "reasoning": lambda c: c.reasoning == "Hm.",
        "files": lambda c: c.files == [],
        "sources": lambda c: c.sources == [],
        "tool_calls": lambda c: [t["tool_name"] for t in c.tool_calls] == ["act", "add"],
        "tool_results": lambda c: [t["output"] for t in c.tool_results] == ["acted 3", 3],
        "finish_reason": lambda c: c.finish_reason == "tool_calls",
        "usage.input": lambda c: isinstance(c.usage, Usage) and c.usage.input_tokens > 0,
        "usage.output": lambda c: c.usage.output_tokens > 0,
        "usage.cached": lambda c: c.usage.cached_tokens == 0,
        "usage.reasoning": lambda c: c.usage.reasoning_tokens == 0,
        "usage.cost": lambda c: c.usage.cost > 0,
        "warnings": lambda c: c.warnings == [],
        "request": lambda c: c.request == {"model": "openai/gpt-4o-mini", "tools": ["act", "add"]},
        "response": lambda c: bool(c.response["id"]) and c.response["model"] == "gpt-4o-mini",
        "provider_metadata": lambda c: c.provider_metadata == {},
        "attempt": lambda c: (c.attempt, c.model_attempt) == (1, 1),
        "duration_ms": lambda c: c.duration_ms > 0,
    },
    "on_chat_response": {
        "message": lambda c: (c.message.role, c.message.text) == ("assistant", "It is done."),
        "status": lambda c: c.status == "completed",
        "error": lambda c: c.error is None,
        "stop_reason": lambda c: c.stop_reason == "end_turn",
        "usage": lambda c: c.usage.total_tokens > 0,
    },
    "on_turn_end": {
        "message": lambda c: c.message.text == "It is done.",
        "status": lambda c: c.status == "completed",
        "error": lambda c: c.error is None,
        "stop_reason": lambda c: c.stop_reason == "end_turn",
        "usage": lambda c: c.usage.total_tokens > 0,
    },
    "on_chat_error": {
        "stage": lambda c: c.stage == "stream",
        "messages_persisted": lambda c: c.messages_persisted is True,
        "classification": lambda c: c.classification == "fatal",
    },
    "classify_chat_error": {
        "stage": lambda c: c.stage == "stream",
        "messages_persisted": lambda c: c.messages_persisted is True,
        "classification": lambda c: c.classification == "fatal",
    },
    "tool": {
        "idempotency_key": lambda c: c.idempotency_key == f"{c.request_id}:tool:{c.tool_call_id}",
        "cancelled": lambda c: c.cancelled.is_set() is False,
        "progress": lambda c: callable(c.progress),
    },
}
EACH = ("before_tool_call", "after_tool_call")
"""Points whose fields are looked at in every visit; elsewhere the first visit counts."""


@pytest.mark.parametrize(
    ("point", "field"), [(point, field) for point, fields in FIELDS.items() for field in fields], ids=str
)
async def test_the_context_of(seen: Seen, point: str, field: str) -> None:
    contexts = seen[point] if point in EACH else seen[point][:1]
    assert contexts
    assert all(map(FIELDS[point][field], contexts))


async def test_a_later_step_sees_the_finished_ones(seen: Seen) -> None:
    second = seen["before_step"][1]
    (first,) = second.steps
    assert (second.step, first.step, first.tool_results[0]["output"]) == (1, 0, "acted 3")
