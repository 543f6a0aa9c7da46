"""The fast lane beside litellm: the same requests, addresses and prices, and nothing of litellm loaded for it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from typing import Any

import pytest

from everturn.activities.models.direct.endpoints import endpoint_of
from everturn.activities.models.direct.lane import OpenAILane
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.litellm_lane import LiteLLMLane
from everturn.activities.models.litellm_module import load_litellm
from everturn.activities.models.prices import cost_by_entry, load_prices, priced_by_litellm_only
from everturn.activities.models.types import ModelRequest
from everturn.turns import JsonDict, Usage

DIRECT = ("openai", "hosted_vllm", "lm_studio", "litellm_proxy", "groq", "deepseek", "openrouter")
PICTURE: JsonDict = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
STRICT_TOOL: JsonDict = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Finds.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"where": {"type": "object", "additionalProperties": False, "properties": {}}},
            "additionalProperties": False,
        },
    },
}
SCHEMA: JsonDict = {
    "type": "json_schema",
    "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}
LOOP: list[JsonDict] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Find it."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "find", "arguments": "{}"},
                "extra_content": {"google": {"thought_signature": "s"}},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": '{"found": true}'},
]


def sent(attempt: Any) -> JsonDict:
    """The body of the request, without the words that mark it."""
    assert attempt.failure is None, (attempt.failure.message, attempt.failure.detail)
    body: JsonDict = json.loads(json.dumps(attempt.records[0].body).replace(attempt.marker, ""))
    return body


@pytest.mark.parametrize("provider", DIRECT)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tools": [], "max_output_tokens": None},
        {"temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 7, "tool_choice": "auto"},
        {"tools": [STRICT_TOOL], "tool_choice": {"type": "function", "function": {"name": "find"}}},
        {"provider_options": {"presence_penalty": 0.5, "logit_bias": {"5": 1}}},
    ],
    ids=["plain", "least", "sampling", "strict tool", "options"],
)
async def test_the_body_is_the_one_that_litellm_sends(
    direct_ask: Any, litellm_ask: Any, provider: str, changes: JsonDict
) -> None:
    one, other = await direct_ask("ok", provider, **changes), await litellm_ask("ok", provider, **changes)
    assert sent(one) == sent(other)


@pytest.mark.parametrize("provider", [provider for provider in DIRECT if provider != "groq"])
async def test_a_schema_for_the_answer_is_sent_as_litellm_does(
    direct_ask: Any, litellm_ask: Any, provider: str
) -> None:
    changes: JsonDict = {"tools": [], "response_format": SCHEMA}
    one, other = await direct_ask("ok", provider, **changes), await litellm_ask("ok", provider, **changes)
    assert sent(one) == sent(other)


async def test_what_a_provider_cannot_stream_or_read_goes_through_litellm(direct_ask: Any) -> None:
    schema = await direct_ask("ok", "groq", tools=[], response_format=SCHEMA)
    assert "stream" not in schema.records[0].body
    pictures = [{"role": "user", "content": [{"type": "text", "text": "hi"}, PICTURE]}]
    request, _ = direct_ask.request("ok", "deepseek", messages=pictures)
    await direct_ask.attempt(request, "hi")
    assert direct_ask.server.requests[-1].body["messages"][0]["content"] == "hi"
    effort = await direct_ask("ok", "hosted_vllm", provider_options={"thinking": {"type": "enabled"}})
    assert "thinking" not in effort.records[0].body
    for attempt in (schema, effort):
        assert "everturn" not in attempt.records[0].headers.get("user-agent", "")


@pytest.mark.parametrize("provider", DIRECT)
@pytest.mark.parametrize("content", [None, "Let me look.", [{"type": "text", "text": "a"}, PICTURE]])
async def test_a_conversation_with_tools_and_pictures_is_worded_as_litellm_does(
    direct_ask: Any, litellm_ask: Any, provider: str, content: Any
) -> None:
    messages = [dict(message) for message in LOOP]
    messages[1 if isinstance(content, list) else 2]["content"] = content
    found: list[JsonDict] = []
    for one in (direct_ask, litellm_ask):
        request, marker = one.request("ok", provider)
        asked = [*messages, {"role": "user", "content": f"And now? {marker}"}]
        found.append(sent(await one.attempt(ModelRequest(**{**fields(request), "messages": asked}), marker)))
    assert found[0] == found[1]


def fields(request: ModelRequest) -> JsonDict:
    return {name: getattr(request, name) for name in ModelRequest.__dataclass_fields__}


async def test_the_addresses_are_those_of_litellm(litellm_lane: LiteLLMLane, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in DIRECT:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", "k")
        for variable in (f"{provider.upper()}_API_BASE", f"{provider.upper()}_BASE_URL"):
            monkeypatch.delenv(variable, raising=False)
    litellm: Any = load_litellm()
    for provider in ("groq", "deepseek"):
        endpoint = endpoint_of(f"{provider}/m")
        assert endpoint is not None
        assert endpoint.address() == litellm.get_llm_provider(f"{provider}/m")[3]
    for provider in ("hosted_vllm", "lm_studio", "litellm_proxy"):
        assert endpoint_of(f"{provider}/m") is None
        assert litellm.get_llm_provider(f"{provider}/m")[3] is None
        monkeypatch.setenv(f"{provider.upper()}_API_BASE", "http://h/v1")
        endpoint = endpoint_of(f"{provider}/m")
        assert endpoint is not None
        assert endpoint.address() == litellm.get_llm_provider(f"{provider}/m")[3] == "http://h/v1"


async def test_prices_without_litellm_are_those_of_litellm(litellm_lane: LiteLLMLane) -> None:
    litellm: Any = load_litellm()
    usage, compared = Usage(1000, 100, 400), 0
    for name, entry in load_prices().items():
        if entry.get("mode") != "chat" or entry.get("litellm_provider") not in DIRECT:
            continue
        cost = cost_by_entry(usage, entry)
        if cost is None or endpoint_of(name) is None:
            continue
        expected = litellm.cost_per_token(
            model=name,
            custom_llm_provider=entry["litellm_provider"],
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            cache_read_input_tokens=usage.cached_tokens,
        )
        assert cost == pytest.approx(sum(expected)), name
        compared += 1
    assert compared > 30


def test_every_model_that_is_asked_directly_has_a_price_if_litellm_lists_one() -> None:
    unpriced = [
        name
        for name, entry in load_prices().items()
        if entry.get("mode") == "chat"
        and entry.get("litellm_provider") in DIRECT
        and endpoint_of(name) is not None
        and entry.get("input_cost_per_token") is not None
        and cost_by_entry(Usage(1, 1), entry) is None
        and not priced_by_litellm_only(name)
    ]
    assert unpriced == []


async def test_calls_one_after_the_other_share_a_connection(litellm_lane: LiteLLMLane) -> None:
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(re.search(rb"content-length: (\d+)", head.lower()).group(1))  # type: ignore[union-attr]
                await reader.readexactly(size)
                event = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
                writer.write(
                    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n" % len(event) + event + b"\r\n"
                )
                await writer.drain()
                writer.write(b"0\r\n\r\n")
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    lane = OpenAILane(litellm_lane)
    for _ in range(5):
        request = ModelRequest("openai/m", [{"role": "user", "content": "hi"}], api_base=base, api_key="k")
        assert [delta.text async for delta in lane.stream(request)] == ["hi"]
    await lane.close()
    server.close()
    await server.wait_closed()
    assert connections == 1


async def test_a_hundred_calls_run_at_once(direct_ask: Any) -> None:
    attempts = await asyncio.gather(*(direct_ask("text:tokens=3,first_ms=2500") for _ in range(110)))
    began = [attempt.records[0].t_request for attempt in attempts]
    assert all(attempt.done.text == "w0001 w0002 w0003 " for attempt in attempts)
    assert max(began) < min(attempt.records[0].t_closed for attempt in attempts)


def test_a_worker_of_direct_models_warms_up_and_answers_without_litellm() -> None:
    code = """
import asyncio, sys
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.prices import cost_of
from everturn.activities.models.types import ModelRequest
from everturn.hooks.agent import Model
from everturn.turns import Usage

async def main():
    lanes = ModelLanes()
    await lanes.warm_up([Model("demo-fast"), Model("openai/gpt-4o-mini"), Model("groq/x")])
    found = await lanes.resolve("demo-fast")
    request = ModelRequest(found.model, [{"role": "user", "content": "1+1"}], api_base=found.api_base, api_key="k")
    print("".join([delta.text or "" async for delta in found.lane.stream(request)]))
    print(cost_of(Usage(1000, 1000), "openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18") > 0)
    print(cost_of(Usage(1000, 1000), "openai/demo-fast", "demo-fast"))
    await lanes.close()
    print("litellm" in sys.modules)

asyncio.run(main())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert out.stdout.split("\n")[:4] == ["1+1 = 2", "True", "None", "False"]


def test_for_a_price_that_changes_with_the_hour_litellm_is_loaded_at_warm_up() -> None:
    code = """
import asyncio
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.prices import cost_of
from everturn.hooks.agent import Model
from everturn.turns import Usage

asyncio.run(ModelLanes().warm_up([Model("deepseek/deepseek-flash")]))
print(cost_of(Usage(1000, 1000), "deepseek/deepseek-flash") > 0)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert out.stdout.strip() == "True"


@pytest.mark.parametrize(
    ("setting", "lane", "direct"),
    [("auto", None, True), ("auto", "litellm", False), ("litellm", None, False), ("litellm", "auto", True)],
)
async def test_the_setting_chooses_the_lane_and_a_model_may_choose_its_own(
    setting: Any, lane: Any, direct: bool
) -> None:
    lanes = ModelLanes(setting)
    found = await lanes.resolve("openai/m", api_base="http://127.0.0.1:1/v1", lane=lane)
    assert isinstance(found.lane, OpenAILane) is direct
    await lanes.close()
