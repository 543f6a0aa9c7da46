"""Answers of model servers that are no answers: the turn ends, says what was wrong, and the worker goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Final

import pytest
import pytest_asyncio

from everturn import Agent, Hooks, Model, tool
from everturn.activities.models.accumulator import Accumulator, Completion
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.types import ModelRequest
from everturn.hooks.agent import Lane
from everturn.messages import dump_json
from everturn.store.encoding import dump
from tests.integration.turns.lab import Lab
from tests.malformed.conftest import StartLab, sample
from tests.malformed.raw_model import RawModelServer
from tests.malformed.streams import answers

ANSWERS: Final = list(answers())
TURNS: Final = range(0, len(ANSWERS), 16)
"""Answers that whole turns get; the others differ only in what the lanes make of them."""
THROUGH_LITELLM: Final = range(0, len(ANSWERS), 16)
MAX_INT: Final = 2**31 - 1
PATIENCE: Final = 40.0
KNOWN_ERRORS: Final = frozenset(
    {
        "bad_request",
        "connection",
        "content_policy",
        "empty_response",
        "incomplete_stream",
        "model_not_found",
        "redirect",
        "repeated_chunk",
        "server_error",
        "stream_error",
    }
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server() -> AsyncIterator[RawModelServer]:
    async with RawModelServer([answer for _, answer in ANSWERS]) as started:
        yield started


@pytest.mark.parametrize(("lane", "numbers"), [("auto", range(len(ANSWERS))), ("litellm", THROUGH_LITELLM)])
async def test_whatever_a_server_sends_becomes_a_storable_answer_or_a_failure(
    server: RawModelServer, lane: Lane, numbers: Sequence[int]
) -> None:
    lanes = ModelLanes(lane)
    resolved = await lanes.resolve("openai/raw", api_base=server.base_url)
    gate = asyncio.Semaphore(16)

    async def problem(number: int) -> str | None:
        request = ModelRequest(
            "openai/raw", [{"role": "user", "content": f"case {number}"}], api_base=server.base_url, api_key="none"
        )
        async with gate, asyncio.timeout(PATIENCE):
            try:
                completion = await _answered(resolved.lane.stream(request))
            except ModelFailure as failure:
                known = failure.code in KNOWN_ERRORS | {"rate_limit", "timeout", "overloaded", "unknown"}
                return None if known and failure.message else f"{ANSWERS[number][0]}: {failure!r}"
            except Exception as error:
                return f"{ANSWERS[number][0]}: {error!r}"
        return _unstorable(ANSWERS[number][0], completion)

    try:
        found = [said for said in await asyncio.gather(*map(problem, numbers)) if said]
    finally:
        await lanes.close()
    assert found == []


async def _answered(deltas: Any) -> Completion:
    accumulator = Accumulator()
    async with aclosing(deltas) as source:
        async for delta in source:
            accumulator.feed(delta)
    return accumulator.close()


def _unstorable(what: str, completion: Completion) -> str | None:
    usage = completion.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens)
    if not all(0 <= count <= MAX_INT for count in counts):
        return f"{what}: {usage}"
    words = [completion.finish_reason, *(w for call in completion.calls for w in (call.tool_call_id, call.tool_name))]
    try:
        inputs = [(call.input, call.provider) for call in completion.calls]
        dump_json([completion.response, usage.cost, words, inputs], "the answer")
        dump(completion.parts)
    except ValueError as error:
        return f"{what}: {error}"
    return None if max(map(len, words)) <= 200 else f"{what}: a word of {max(map(len, words))} characters"


class NoRetries(Hooks):
    """A wrong answer stays wrong; the test need not wait for five of them."""

    def classify_chat_error(self, error: Any, ctx: Any) -> str:
        return "fatal"


@tool
async def note(text: str) -> str:
    """Notes something."""
    return text


class Reader(Agent):
    name = "reader"
    max_steps = 1
    tools = (note,)
    hooks = (NoRetries(),)


async def test_turns_with_broken_answers_end_with_one_clear_error_or_a_right_result(
    start: StartLab, server: RawModelServer
) -> None:
    Reader.model = Model("openai/raw", api_base=server.base_url)
    async with start(Reader()) as lab:
        gate = asyncio.Semaphore(16)

        async def problem(number: int) -> str | None:
            async with gate:
                said = await _turn(lab, number)
                return f"{ANSWERS[number][0]}: {said}" if said else None

        found = [said for said in await asyncio.gather(*map(problem, sample(lab, TURNS))) if said]
        assert found == []
        assert await _turn(lab, 0, must_complete=True) is None


async def _turn(lab: Lab, number: int, *, must_complete: bool = False) -> str | None:
    turn = await lab.submit(lab.thread(), f"case {number}", "reader")
    result = await turn.result(PATIENCE)
    chunks = await lab.chunks(turn)
    info = await turn.info()
    if result.status == "completed":
        return None if info.steps and chunks[-1].type == "finish" else f"{info} {chunks[-1]}"
    if must_complete or result.status != "error" or result.error is None or chunks[-1].type != "error":
        return f"{result} {chunks[-1]}"
    return None if result.error.type in KNOWN_ERRORS and len(result.error.message) < 500 else str(result.error)
