"""on_chunk watches the stream from the side."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from everturn import Agent, Chunk
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, hooks, the_trace, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, shown_text


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_hook_sees_every_chunk_in_order_numbered_from_one(
    start_lab: StartLab, scripted_server: ScriptedModelServer, asynchronous: bool
) -> None:
    seen: list[tuple[int, Chunk]] = []

    def plain(self: Any, chunk: Chunk, ctx: Any) -> None:
        seen.append((ctx.step, chunk))

    async def async_(self: Any, chunk: Chunk, ctx: Any) -> None:
        seen.append((ctx.step, chunk))

    watcher = hooks(on_chunk=async_ if asynchronous else plain)
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=[watcher])) as lab:
        turn = await lab.play(f"tools say='I add. ' {ADD}")
        await turn.result(15)
        for step in (0, 1):
            chunks = [chunk for of, chunk in seen if of == step]
            assert [chunk.seq for chunk in chunks] == list(range(1, len(chunks) + 1))
            assert {(chunk.step, chunk.attempt) for chunk in chunks} == {(step, 1)}
            assert (chunks[0].type, chunks[-1].type) == ("start-step", "finish-step")
        assert "tool-input-available" in [chunk.type for _, chunk in seen]
        text = "".join(chunk.data["delta"] for _, chunk in seen if chunk.type == "text-delta")
        assert text == shown_text(await lab.chunks(turn))


async def test_a_slow_hook_slows_neither_the_delivery_nor_the_end_of_the_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async def slow(self: Any, chunk: Chunk, ctx: Any) -> None:
        await asyncio.sleep(0.2)  # the slowness under test

    async with start_lab(make_agent(scripted_server, hooks=[hooks("Slow", on_chunk=slow)])) as lab:
        turn = await lab.play("text tokens=100 delay_ms=5")
        started = time.monotonic()
        last_text = started
        chunks = []
        async for chunk in turn.stream():
            chunks.append(chunk)
            if chunk.type == "text-delta":
                last_text = time.monotonic()
        assert len(shown_text(chunks).split()) == 100
        assert last_text - started < 5, "twenty seconds of hook time are not in the way"
        assert time.monotonic() - started < 10
        trace = the_trace(await turn.info(), "on_chunk")
        assert "were not shown to this hook: it is too slow" in str(trace.message)


async def test_what_waits_for_a_slow_hook_is_bounded(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    seen: list[Chunk] = []

    async def stuck(self: Any, chunk: Chunk, ctx: Any) -> None:
        seen.append(chunk)
        await asyncio.Event().wait()

    async with start_lab(make_agent(scripted_server, hooks=[hooks("Stuck", on_chunk=stuck)])) as lab:
        turn = await lab.play("text tokens=2500")
        assert (await turn.result(30)).status == "completed"
        trace = the_trace(await turn.info(), "on_chunk")
        assert len(seen) == 1
        assert int(str(trace.message).split(" ", maxsplit=1)[0]) > 2400


async def test_a_raising_hook_never_breaks_the_stream_and_goes_on_watching(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[str] = []

    class Watching(Agent):
        async def on_chunk(self, chunk: Chunk, ctx: Any) -> None:
            ctx.log(f"saw {chunk.type}")
            seen.append(chunk.type)
            if len(seen) == 1:
                raise ValueError("broken hook")

    async with start_lab(make_agent(scripted_server, base=Watching)) as lab:
        turn = await lab.play("text tokens=5")
        assert (await turn.result(15)).status == "completed"
        assert len(seen) > 5
        trace = the_trace(await turn.info(), "on_chunk")
        assert (trace.outcome, trace.message) == ("error", "ValueError: broken hook")
        assert trace.logs[0]["message"] == "saw start-step"


async def test_each_attempt_of_a_step_is_watched_on_its_own(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[tuple[int, int, str]] = []

    async def watch(self: Any, chunk: Chunk, ctx: Any) -> None:
        seen.append((chunk.attempt, chunk.seq, chunk.type))

    async with start_lab(make_agent(scripted_server, hooks=[hooks(on_chunk=watch)])) as lab:
        turn = await lab.play("cut times=1")
        assert (await turn.result(20)).text == "ok"
        assert len(traces(await turn.info(), "on_chunk")) == 2
    assert [call for call in seen if call[1] == 1] == [(1, 1, "start-step"), (2, 1, "start-step")]
