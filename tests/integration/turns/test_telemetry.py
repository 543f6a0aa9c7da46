"""What a turn tells an operator: events in the log, and OpenTelemetry spans."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from temporalio.client import Client
from temporalio.contrib.opentelemetry import TracingInterceptor

from everturn import Agent, Telemetry, Turn, TurnConfig
from everturn.activities import telemetry as telling
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, hooks
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, Lab, make_agent, running_lab

SPANS = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def provider() -> Iterator[None]:
    """OpenTelemetry's own provider is set once a process."""
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(SPANS))
    trace.set_tracer_provider(made)
    yield
    SPANS.clear()


def agent_with(server: ScriptedModelServer, telemetry: Telemetry | None, **attributes: Any) -> Agent:
    async def before_turn(self: Any, ctx: Any) -> TurnConfig:
        return TurnConfig(telemetry=telemetry, temperature=0.5)

    return make_agent(server, tools=[add], hooks=[hooks(before_turn=before_turn)], **attributes)


def spans_of(turn: Turn) -> list[ReadableSpan]:
    found = [span for span in SPANS.get_finished_spans() if facts(span).get("everturn.request_id") == turn.request_id]
    return sorted(found, key=lambda span: span.end_time or 0)


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def events(caplog: pytest.LogCaptureFixture, turn: Turn) -> list[tuple[str, dict[str, Any]]]:
    found = [(record.event, record.facts) for record in caplog.records if hasattr(record, "event")]  # type: ignore[attr-defined]
    return [(event, told) for event, told in found if told["request_id"] == turn.request_id]


async def finished(lab: Lab, script: str, **options: Any) -> Turn:
    turn = await lab.play(script, **options)
    await turn.result(WAIT)
    return turn


async def test_each_model_call_and_tool_is_a_span_with_the_conventions_attributes(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = agent_with(scripted_server, Telemetry(function_id="sums", attributes={"plan": "pro"}))
    async with start_lab(agent) as lab:
        turn = await finished(lab, f"tools say='Adding.' {ADD}")
        first, tool, second = spans_of(turn)
        info = await turn.info()
    assert [span.name for span in (first, tool, second)] == ["chat scripted", "execute_tool add", "chat scripted"]
    assert (first.kind, tool.kind) == (SpanKind.CLIENT, SpanKind.INTERNAL)
    common = {
        "plan": "pro",
        "everturn.function_id": "sums",
        "gen_ai.agent.name": "agent",
        "gen_ai.conversation.id": turn.thread_id,
        "everturn.request_id": turn.request_id,
    }
    step = info.steps[0]
    told = facts(first)
    assert told.pop("gen_ai.response.id")
    assert told == {
        **common,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": (step.finish_reason,),
        "gen_ai.usage.input_tokens": step.usage.input_tokens,
        "gen_ai.usage.output_tokens": step.usage.output_tokens,
        "everturn.step": 0,
        "everturn.attempt": 1,
    }
    assert facts(tool) == {
        **common,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": info.tool_calls[0].tool_call_id,
        "everturn.step": 0,
    }
    assert first.start_time is not None
    assert first.end_time is not None
    assert first.end_time - first.start_time == step.duration_ms * 1_000_000


async def test_prompts_and_answers_are_told_only_where_the_turn_says_so(
    start_lab: StartLab, scripted_server: ScriptedModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "everturn.events")
    script = "tools say='a quiet word' args='{\"a\": 4711, \"b\": 1}'"
    for inputs, outputs in ((False, False), (True, False), (False, True)):
        wanted = Telemetry(record_inputs=inputs, record_outputs=outputs)
        async with start_lab(agent_with(scripted_server, wanted, system="Be brief.")) as lab:
            turn = await finished(lab, script)
            first, tool, second = (facts(span) for span in spans_of(turn))
        content = {name for name in (*first, *tool) if name.rpartition(".")[2] in CONTENT}
        expected = (
            {"gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.tool.call.arguments"} if inputs else set()
        )
        assert content == (expected | ({"gen_ai.output.messages", "gen_ai.tool.call.result"} if outputs else set()))
        assert ("4711" in str([first, tool, second])) is (inputs or outputs)
        if inputs:
            assert json.loads(first["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
            asked = json.loads(second["gen_ai.input.messages"])
            assert [message["role"] for message in asked] == ["user", "assistant", "tool"]
            assert asked[1]["parts"][1]["name"] == "add"
            assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"a": 4711, "b": 1}
        if outputs:
            (answer,) = json.loads(first["gen_ai.output.messages"])
            assert [part["type"] for part in answer["parts"]] == ["text", "tool_call"]
            assert answer["parts"][0]["content"] == "a quiet word"
            assert tool["gen_ai.tool.call.result"] == "4712"
    assert "4711" not in caplog.text
    assert "quiet" not in caplog.text


CONTENT = frozenset({"messages", "system_instructions", "arguments", "result"})


async def test_failed_calls_and_tools_are_spans_with_their_error_and_each_attempt_has_its_own(
    start_lab: StartLab, scripted_server: ScriptedModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "everturn.events")
    async with start_lab(agent_with(scripted_server, Telemetry())) as lab:
        turn = await finished(lab, "status code=429 retry_after_ms=10 times=1 then=ok")
        refused, answered = spans_of(turn)
        broken = await finished(lab, "tools args='{\"a\": 1}' | ok")
        assert [span.name for span in spans_of(broken)] == ["chat scripted", "chat scripted"], "the tool never ran"
    assert (refused.status.status_code, facts(refused)["error.type"]) == (StatusCode.ERROR, "rate_limit")
    assert answered.status.status_code is StatusCode.UNSET
    assert (facts(refused)["everturn.attempt"], facts(answered)["everturn.attempt"]) == (1, 2)
    (failed, told), (finished_, _) = events(caplog, turn)
    assert (failed, finished_) == ("chat:step:failed", "chat:step:finished")
    assert (told["error"], told["model"], told["attempt"]) == ("rate_limit", "openai/scripted", 1)


async def test_the_events_have_the_facts_and_the_turns_attributes(
    start_lab: StartLab, scripted_server: ScriptedModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "everturn.events")
    agent = agent_with(scripted_server, Telemetry(function_id="sums", attributes={"plan": "pro"}))
    async with start_lab(agent) as lab:
        turn = await finished(lab, f"tools {ADD}")
    told = events(caplog, turn)
    assert [event for event, _ in told] == ["chat:step:finished", "chat:tool:finished", "chat:step:finished"]
    for _, given in told:
        assert (given["function_id"], given["attributes"]) == ("sums", {"plan": "pro"})
        assert (given["thread_id"], given["agent"]) == (turn.thread_id, "agent")
    step, tool = told[0][1], told[1][1]
    assert (step["model"], step["step"], step["interrupted"]) == ("openai/scripted", 0, False)
    assert (tool["tool_name"], tool["state"]) == ("add", "done")


@pytest.mark.parametrize("telemetry", [None, Telemetry(enabled=False)], ids=["nothing", "switched off"])
async def test_a_turn_that_does_not_ask_for_it_tells_nothing(
    start_lab: StartLab,
    scripted_server: ScriptedModelServer,
    caplog: pytest.LogCaptureFixture,
    telemetry: Telemetry | None,
) -> None:
    caplog.set_level(logging.INFO, "everturn.events")
    async with start_lab(agent_with(scripted_server, telemetry)) as lab:
        turn = await finished(lab, f"tools {ADD}")
    assert spans_of(turn) == []
    assert events(caplog, turn) == []


async def test_without_opentelemetry_the_events_are_told_all_the_same(
    start_lab: StartLab,
    scripted_server: ScriptedModelServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, "everturn.events")
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)  # as where it is not installed
    telling._tracer.cache_clear()
    try:
        async with start_lab(agent_with(scripted_server, Telemetry())) as lab:
            turn = await finished(lab, "ok")
    finally:
        telling._tracer.cache_clear()
    assert [event for event, _ in events(caplog, turn)] == ["chat:step:finished"]
    assert spans_of(turn) == []


async def test_with_temporals_tracing_the_spans_stand_in_the_trace_of_the_turns_workflow(
    client: Client, scripted_server: ScriptedModelServer, task_queue: str, store_url: str
) -> None:
    traced = Client(**{**client.config(), "interceptors": [TracingInterceptor()]})
    agent = agent_with(scripted_server, Telemetry())
    lab: AbstractAsyncContextManager[Lab] = running_lab(traced, scripted_server, task_queue, store_url, [agent])
    async with lab as running:
        turn = await finished(running, f"tools {ADD}")
        spans = spans_of(turn)
    assert len(spans) == 3
    assert len({span.context.trace_id for span in spans}) == 1
    parents = {span.context.span_id: span.name for span in SPANS.get_finished_spans()}
    assert [parents[span.parent.span_id] for span in spans if span.parent] == [
        "RunActivity:everturn.model_step",
        "RunActivity:everturn.run_tool",
        "RunActivity:everturn.model_step",
    ]
