"""Which lane, address and key a model string leads to; the demo model end to end."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from everturn.activities.models.accumulator import Accumulator, Completion
from everturn.activities.models.direct.lane import OpenAILane
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.litellm_lane import LiteLLMLane
from everturn.activities.models.prices import cost_of
from everturn.activities.models.prompt import build_prompt
from everturn.activities.models.quirks import quirks_of
from everturn.activities.models.types import ModelLane, ModelRequest
from everturn.messages import Message
from everturn.store.records import PromptMaterial, StepRecord, TurnFacts
from everturn.turns import JsonDict, Principal, Usage

WEATHER: JsonDict = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather for a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
FACTS = TurnFacts("r1", "th", "a", "submit", "running", None, Principal(), None, {}, {}, {}, 0, Usage())


@pytest_asyncio.fixture(loop_scope="session", params=["auto", "litellm"])
async def lanes(request: pytest.FixtureRequest, litellm_lane: LiteLLMLane) -> AsyncIterator[ModelLanes]:
    found = ModelLanes(request.param)
    yield found
    await found.close()


async def complete(lanes: ModelLanes, model: str, messages: list[JsonDict], tools: list[JsonDict]) -> Completion:
    found = await lanes.resolve(model)
    accumulator = Accumulator()
    request = ModelRequest(found.model, messages, tools, api_base=found.api_base, api_key=found.api_key)
    async for delta in found.lane.stream(request):
        accumulator.feed(delta)
    return accumulator.close()


def settled(request: ModelRequest, done: Completion) -> StepRecord:
    """A completed step as it is stored once its calls have returned."""
    calls = [replace(call, state="done", output="18") for call in done.calls]
    return StepRecord("r1", 0, 1, request.model, done.parts, calls, done.finish_reason, done.usage, 1)


async def test_the_demo_model_calls_the_tool_and_says_what_it_returned(lanes: ModelLanes) -> None:
    tools = [WEATHER]
    messages: list[JsonDict] = [{"role": "user", "content": "Weather in Paris?"}]
    first = await complete(lanes, "demo-fast", messages, tools)
    assert [(c.tool_name, c.input) for c in first.calls] == [("get_weather", {"city": "Paris"})]
    call = first.calls[0]
    function = {"name": call.tool_name, "arguments": json.dumps(call.input)}
    asked = {"id": call.tool_call_id, "type": "function", "function": function}
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": call.tool_call_id, "content": '{"sky": "clear", "temp_c": 18}'},
    ]
    second = await complete(lanes, "demo-fast", messages, tools)
    assert "sky clear" in second.text
    assert "18" in second.text


async def test_the_demo_server_starts_once_and_only_when_it_is_used(lanes: ModelLanes) -> None:
    found = await asyncio.gather(*(lanes.resolve("demo") for _ in range(10)))
    assert len({f.api_base for f in found}) == 1
    assert found[0].model == "openai/demo"


async def test_a_named_key_variable_must_be_set(lanes: ModelLanes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(ModelFailure, match="SOME_KEY") as caught:
        await lanes.resolve("openai/x", api_key_env="SOME_KEY")
    assert (caught.value.kind, caught.value.code) == ("fatal", "authentication")
    monkeypatch.setenv("SOME_KEY", "sk-some-1234567")
    found = await lanes.resolve("openai/x", api_key_env="SOME_KEY")
    assert (found.api_key, found.key_env) == ("sk-some-1234567", "SOME_KEY")
    assert "sk-some" not in repr(found)


async def test_a_local_server_needs_no_key(lanes: ModelLanes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = await lanes.resolve("openai/local", api_base="http://127.0.0.1:1/v1")
    assert found.api_key
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine-1234567")
    assert (await lanes.resolve("openai/gpt-x")).api_key == "sk-mine-1234567"


async def test_a_missing_key_is_a_clear_failure_without_any_request(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for provider in ("openai", "anthropic"):
        attempt = await ask("text", provider, api_key=None)
        assert (attempt.failed.kind, attempt.failed.code) == ("fatal", "authentication")
        assert f"{provider.upper()}_API_KEY" in attempt.failed.message
        assert attempt.records == []


@pytest.mark.parametrize(
    ("provider", "scenario"),
    [("anthropic", "think:calls=1,strict=1"), ("openai", "provider_fields"), ("hosted_vllm", "provider_fields")],
)
async def test_the_next_step_sends_back_what_the_provider_wants(ask: Any, provider: str, scenario: str) -> None:
    request, marker = ask.request(scenario, provider)
    first = (await ask.attempt(request, marker)).done
    record = settled(request, first)
    user = Message("m", "user", [{"type": "text", "text": f"weather in Paris {marker}"}])
    prompt = build_prompt(PromptMaterial(FACTS, [user], [record]), "", quirks=quirks_of(request.model))
    options = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if provider == "anthropic" else {}
    second = await ask(scenario, provider, messages=prompt.messages, provider_options=options, max_output_tokens=2048)
    assert second.done.text in ("I have thought.", "signature seen")


async def test_deepseek_gets_its_reasoning_back_within_the_tool_loop(ask: Any) -> None:
    scenario = "think:calls=1,strict=1,for=deepseek"
    request, marker = ask.request(scenario)
    first = (await ask.attempt(request, marker)).done
    record = settled(request, first)
    user = Message("m", "user", [{"type": "text", "text": "weather in Paris"}])
    prompt = build_prompt(PromptMaterial(FACTS, [user], [record]), "", quirks=quirks_of(request.model))
    assert (await ask(scenario, messages=prompt.messages)).done.text == "I have thought."


async def test_provider_options_cannot_add_retries_or_turn_the_stream_off(ask: Any) -> None:
    options = {"num_retries": 3, "max_retries": 3, "stream": False, "model": "openai/other", "presence_penalty": 0.5}
    attempt = await ask("status:code=500", provider_options=options)
    assert len(attempt.records) == 1
    assert attempt.records[0].body["stream"] is True
    assert attempt.records[0].body["presence_penalty"] == 0.5


async def test_settings_reach_the_provider(ask: Any) -> None:
    attempt = await ask(
        "text:tokens=1",
        temperature=0.5,
        top_p=0.9,
        stop=["END"],
        seed=7,
        tool_choice="auto",
        headers={"x-team": "blue"},
    )
    body = attempt.records[0].body
    assert (body["temperature"], body["top_p"], body["stop"], body["seed"]) == (0.5, 0.9, ["END"], 7)
    assert body["tool_choice"] == "auto"
    assert attempt.records[0].headers["x-team"] == "blue"


async def test_prices_are_known_for_listed_models_and_unknown_for_others(litellm_lane: LiteLLMLane) -> None:
    usage = Usage(input_tokens=1000, output_tokens=1000, cached_tokens=500)
    known = cost_of(usage, "openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18")
    assert known is not None
    assert known > 0
    assert known < (cost_of(Usage(1000, 1000), "openai/gpt-4o-mini") or 0)
    assert cost_of(usage, "openai/text:tokens=1", "text:tokens=1") is None
    assert cost_of(usage, "", None) is None


def test_importing_the_model_layer_does_not_import_litellm() -> None:
    code = "import sys, everturn.activities.models.lanes; print('litellm' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert out.stdout.strip() == "False"


async def test_closing_one_lane_leaves_the_connections_of_another_alone(
    ask: Any, lane: ModelLane, litellm_lane: LiteLLMLane
) -> None:
    other = LiteLLMLane() if isinstance(lane, LiteLLMLane) else OpenAILane(litellm_lane)
    request, marker = ask.request("text:tokens=2")
    async for _ in other.stream(request):
        pass
    await other.close()
    assert (await ask.attempt(request, marker)).done.text == "w0001 w0002 "


@pytest.mark.parametrize("setting", ["auto", "litellm"])
def test_a_lane_can_be_closed_and_another_opened_in_one_process(setting: str) -> None:
    code = """
import asyncio, sys
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.types import ModelRequest

async def one():
    lanes = ModelLanes(sys.argv[1])
    found = await lanes.resolve("demo-fast")
    messages = [{"role": "user", "content": "1+1"}]
    request = ModelRequest(found.model, messages, api_base=found.api_base, api_key=found.api_key)
    said = "".join([delta.text or "" async for delta in found.lane.stream(request)])
    await lanes.close()
    print(said)

async def main():
    await one()
    await one()

asyncio.run(main())
"""
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", code, setting]
    out = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert out.stdout.split("\n")[:2] == ["1+1 = 2", "1+1 = 2"]
    assert "unclosed" not in out.stderr.lower()
