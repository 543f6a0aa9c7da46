"""Workers that die or stop in the middle of a turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest

from everturn import Chunk, Turn
from tests.chaos.conftest import ChaosLab

LIMIT = 60.0
RECOVERY_LIMIT = 20.0
"""Generous: the time is measured in benchmarks/, here it only has to happen."""


def words(count: int) -> str:
    return "".join(f"w{i:04d} " for i in range(1, count + 1))


class Screen:
    """What a client shows: the text of the current attempt of each step."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self._texts: dict[int, str] = {}

    def take(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        if chunk.type == "text-delta" and chunk.step is not None:
            self._texts[chunk.step] = self._texts.get(chunk.step, "") + chunk.data["delta"]
        elif chunk.type == "data-reset":
            self._texts.pop(chunk.data["step"], None)

    @property
    def text(self) -> str:
        return "".join(text for _, text in sorted(self._texts.items()))


async def until(chunks: AsyncIterator[Chunk], screen: Screen, done: Callable[[Chunk], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        async for chunk in chunks:
            screen.take(chunk)
            if done(chunk):
                return


async def watched(turn: Turn, screen: Screen, *, words_seen: int) -> AsyncIterator[Chunk]:
    """The turn's stream, once it has shown some words."""
    chunks = turn.stream()
    await until(chunks, screen, lambda chunk: len(screen.text.split()) >= words_seen)
    return chunks


@pytest.mark.timeout(180)
async def test_a_worker_killed_in_the_middle_of_a_stream_leaves_no_doubled_or_missing_word(chaos: ChaosLab) -> None:
    first = await chaos.house.start()
    screen = Screen()
    turn = await chaos.chat.submit("thread", "[[text tokens=150 delay_ms=60]]", agent="chaos")
    chunks = await watched(turn, screen, words_seen=5)
    await chaos.house.start()
    first.kill()
    killed = time.monotonic()
    await until(chunks, screen, lambda chunk: chunk.is_end)
    assert screen.chunks[-1].type == "finish"
    assert screen.text.split() == words(150).split()
    assert [chunk.seq for chunk in screen.chunks] == list(range(1, len(screen.chunks) + 1))
    result = await turn.result(10)
    assert result.text.split() == words(150).split()
    resets = [chunk for chunk in screen.chunks if chunk.type == "data-reset"]
    assert [chunk.data for chunk in resets] == [{"step": 0, "attempt": 1}]
    assert time.monotonic() - killed < RECOVERY_LIMIT + 150 * 0.06
    assert [message.role for message in await chaos.chat.messages("thread")] == ["user", "assistant"]


@pytest.mark.timeout(180)
async def test_a_worker_stopped_by_sigterm_hands_its_stream_over_and_nobody_calls_it_a_cancel(chaos: ChaosLab) -> None:
    first = await chaos.house.start()
    screen = Screen()
    turn = await chaos.chat.submit("thread", "[[text tokens=150 delay_ms=60]]", agent="chaos")
    chunks = await watched(turn, screen, words_seen=5)
    await chaos.house.start()
    stopping = asyncio.ensure_future(first.stop())
    await until(chunks, screen, lambda chunk: chunk.is_end)
    assert await stopping == 0
    assert screen.chunks[-1].type == "finish"
    assert screen.text.split() == words(150).split()
    info = await turn.info()
    assert info.turn.status == "completed"
    assert info.attempts_failed == 0


@pytest.mark.timeout(180)
async def test_a_tool_that_is_not_idempotent_runs_once_although_its_worker_was_killed(chaos: ChaosLab) -> None:
    first = await chaos.house.start(CHAOS_TOOL_SECONDS="30")
    message = "[[tools calls=1 tool=charge args='{\"amount\": 7}']]"
    turn = await chaos.chat.submit("thread", message, agent="chaos")
    async with asyncio.timeout(LIMIT):
        while not chaos.effect_lines():
            await asyncio.sleep(0.05)
    first.kill()
    await chaos.house.start()
    result = await turn.result(LIMIT)
    assert result.status == "completed"
    assert chaos.effect_lines() == ["charge 7"]
    (call,) = (await turn.info()).tool_calls
    assert call.state == "unknown"
    last_prompt = chaos.model_server.requests[-1].body["messages"]
    assert "unknown" in next(m["content"] for m in last_prompt if m["role"] == "tool")


@pytest.mark.timeout(180)
async def test_an_idempotent_tool_runs_again_after_its_worker_was_killed(chaos: ChaosLab) -> None:
    first = await chaos.house.start(CHAOS_TOOL_SECONDS="30")
    message = '[[tools calls=1 tool=store_note args=\'{"text": "x"}\']]'
    turn = await chaos.chat.submit("thread", message, agent="chaos")
    async with asyncio.timeout(LIMIT):
        while not chaos.effect_lines():
            await asyncio.sleep(0.05)
    first.kill()
    await chaos.house.start()
    result = await turn.result(LIMIT)
    assert result.status == "completed"
    assert chaos.effect_lines() == ["note x", "note x"]
    (call,) = (await turn.info()).tool_calls
    assert (call.state, call.output) == ("done", "stored x")
