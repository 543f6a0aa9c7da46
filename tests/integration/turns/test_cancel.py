"""The stop button: during the stream, in a tool, in the queue, from Temporal itself, too late, too often."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

import pytest

from everturn import Model, ToolContext, Turn, tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, eventually, make_agent, shown_text

LONG = "text tokens=2000 delay_ms=20"


async def stop(lab: Lab, turn: Turn, how: str) -> None:
    """Cancels a turn as a client does, or as the Web UI does."""
    if how == "client":
        assert await lab.chat.cancel_chat(turn.request_id, "user pressed stop") == "cancelled"
    else:
        await lab.client.get_workflow_handle(workflow_id(turn.request_id)).cancel()


def roles_asked(lab: Lab, turn: Turn) -> list[str]:
    return [message["role"] for message in lab.asked(turn)[-1].body["messages"]]


@pytest.mark.parametrize("how", ["client", "temporal"])
async def test_a_turn_stopped_while_the_model_talks_keeps_what_was_said(
    start_lab: StartLab, scripted_server: ScriptedModelServer, how: str
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play(LONG)
        await lab.until(turn, "text-delta")
        await stop(lab, turn, how)
        result = await turn.result(10)
        assert (result.status, result.stop_reason, result.error) == ("aborted", "cancelled", None)
        assert result.text.startswith("w0001")
        chunks = await lab.chunks(turn)
        assert chunks[-1].type == "abort"
        assert shown_text(chunks) == result.text
        if how == "client":
            assert chunks[-1].data["reason"] == "user pressed stop"
        (record,) = lab.asked(turn)
        assert record.client_closed
        stored = (await lab.chat.messages(turn.thread_id))[-1]
        assert (stored.role, stored.text) == ("assistant", result.text)
        following = await lab.play("say text='next answer'", turn.thread_id)
        assert (await following.result(10)).text == "next answer"
        assert roles_asked(lab, turn) == ["user", "assistant", "user"]


async def test_a_stop_closes_the_providers_connection_within_a_tenth_of_a_second(
    start_lab: StartLab, scripted_server: ScriptedModelServer, model: Model
) -> None:
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        delays: list[float] = []
        for _ in range(7):
            turn = await lab.play(LONG)
            await lab.until(turn, "text-delta")
            pressed = time.time()
            await lab.chat.cancel_chat(turn.request_id)
            await turn.result(10)
            closed = lab.asked(turn)[0].t_closed
            assert closed is not None
            delays.append(closed - pressed)
        # The median: this process shares its processors with others.
        assert statistics.median(delays) < 0.1, delays


async def test_a_stop_before_the_first_token_stores_no_empty_answer(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("stall kind=silence")

        async def asked() -> bool:
            return bool(lab.asked(turn))

        await eventually(asked, "the model is asked")
        await lab.chat.cancel_chat(turn.request_id)
        result = await turn.result(10)
        assert (result.status, result.message, result.text) == ("aborted", None, "")
        assert [m.role for m in await lab.chat.messages(turn.thread_id)] == ["user"]
        assert (await (await lab.play("ok", turn.thread_id)).result(10)).text == "ok"


async def test_a_stop_while_the_model_is_about_to_be_asked_again_ends_the_wait(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("rate_limit retry_after=50")
        await lab.until(turn, "data-retrying")
        started = time.monotonic()
        await lab.chat.cancel_chat(turn.request_id)
        assert (await turn.result(10)).status == "aborted"
        assert time.monotonic() - started < 5
        assert len(lab.asked(turn)) == 1


def cancellable_tools(seen: list[str]) -> dict[str, Any]:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    @tool(name="work")
    async def on_the_loop() -> str:
        """Works for ever."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("closed")
        return "never"

    @tool(name="work")
    async def on_the_loop_with_context(ctx: ToolContext) -> str:
        """Works until it is stopped."""
        started.set()
        await ctx.cancelled.wait()
        seen.append("told")
        raise RuntimeError("stopped half-way")

    @tool(name="work")
    def in_a_thread() -> str:
        """Blocks a thread."""
        loop.call_soon_threadsafe(started.set)
        time.sleep(3)
        return "too late"

    @tool(name="work")
    def in_a_thread_with_context(ctx: ToolContext) -> str:
        """Blocks a thread until it is stopped."""
        loop.call_soon_threadsafe(started.set)
        if ctx.cancelled.wait_in_thread(20):
            seen.append("told")
        raise RuntimeError("stopped half-way")

    kinds = (on_the_loop, on_the_loop_with_context, in_a_thread, in_a_thread_with_context)
    return {"started": started, **{kind.function.__name__: kind for kind in kinds}}


@pytest.mark.parametrize("how", ["client", "temporal"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("on_the_loop", ["closed"]),
        ("on_the_loop_with_context", ["told"]),
        ("in_a_thread", []),
        ("in_a_thread_with_context", ["told"]),
    ],
)
async def test_a_turn_stopped_in_a_tool_settles_the_call(
    start_lab: StartLab, scripted_server: ScriptedModelServer, kind: str, expected: list[str], how: str
) -> None:
    seen: list[str] = []
    tools = cancellable_tools(seen)
    async with start_lab(make_agent(scripted_server, tools=[tools[kind]])) as lab:
        turn = await lab.play("tools say='let me see' args='{}'")
        await asyncio.wait_for(tools["started"].wait(), 20)
        pressed = time.monotonic()
        await stop(lab, turn, how)
        result = await turn.result(10)
        assert time.monotonic() - pressed < 8  # long before the tool ends by itself
        assert (result.status, result.stop_reason) == ("aborted", "cancelled")
        assert seen == expected
        (call,) = (await turn.info()).tool_calls
        assert (call.state, call.output) == ("interrupted", None)
        chunks = await lab.chunks(turn)
        assert [c.type for c in chunks if c.type.startswith("tool-output")] == ["tool-output-error"]
        assert len(lab.asked(turn)) == 1
        following = await lab.play("say text=next", turn.thread_id)
        assert (await following.result(10)).text == "next"
        assert roles_asked(lab, turn) == ["user", "assistant", "tool", "user"]


async def test_what_a_tool_returns_when_it_is_told_to_stop_counts(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    started = asyncio.Event()

    @tool
    async def work(ctx: ToolContext) -> str:
        """Stops in order."""
        started.set()
        await ctx.cancelled.wait()
        return "half of it"

    async with start_lab(make_agent(scripted_server, tools=[work])) as lab:
        turn = await lab.play("tools args='{}'")
        await asyncio.wait_for(started.wait(), 20)
        await lab.chat.cancel_chat(turn.request_id)
        assert (await turn.result(10)).status == "aborted"
        (call,) = (await turn.info()).tool_calls
        assert (call.state, call.output) == ("done", "half of it")
        assert len(lab.asked(turn)) == 1


async def test_a_tool_that_refuses_to_be_cancelled_does_not_hold_the_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Swallows its cancellation."""
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "released"

    async with start_lab(make_agent(scripted_server, tools=[stubborn])) as lab:
        turn = await lab.play("tools args='{}'")
        await asyncio.wait_for(started.wait(), 20)
        try:
            await lab.chat.cancel_chat(turn.request_id)
            assert (await turn.result(10)).status == "aborted"
            following = await lab.play("say text=next", turn.thread_id)
            assert (await following.result(10)).text == "next"
        finally:
            release.set()


@pytest.mark.parametrize("how", ["client", "temporal"])
async def test_a_queued_turn_is_withdrawn_without_a_trace_in_the_transcript(
    start_lab: StartLab, scripted_server: ScriptedModelServer, how: str
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        first = await lab.play("text tokens=60 delay_ms=25")
        await lab.until(first, "text-delta")
        second = await lab.play("say text=withdrawn", first.thread_id)
        third = await lab.play("say text=third", first.thread_id)
        await lab.until(second, "data-queued")
        await stop(lab, second, how)
        result = await second.result(10)
        assert (result.status, result.message) == ("aborted", None)
        assert (await lab.chunks(second))[-1].type == "abort"
        assert (await first.result(20)).status == "completed"
        assert (await third.result(20)).text == "third"
        texts = [m.text for m in await lab.chat.messages(first.thread_id)]
        assert len(texts) == 4
        assert not any("withdrawn" in text for text in texts)
        assert not any("withdrawn" in str(record.body) for record in lab.asked(first))


async def test_a_turn_cancelled_before_any_worker_runs_leaves_no_message_and_calls_no_model(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server)
    async with start_lab(agent, workers=0) as lab:
        turn = await lab.play("say text=unwanted")
        other = await lab.play("say text=unwanted")
        assert await lab.chat.cancel_chat(turn.request_id) == "cancelled"
        await lab.client.get_workflow_handle(other.workflow_id).cancel()
        async with start_lab(agent):
            for withdrawn in (turn, other):
                result = await withdrawn.result(20)
                assert (result.status, result.stop_reason) == ("aborted", "cancelled")
                assert lab.asked(withdrawn) == []
                assert await lab.chat.messages(withdrawn.thread_id) == []
                assert [c.type for c in await lab.chunks(withdrawn)] == ["abort"]
            following = await lab.play("say text=next", turn.thread_id)
            assert (await following.result(10)).text == "next"
            assert roles_asked(lab, turn) == ["user"]


async def test_pressing_stop_twice_and_too_late_is_harmless(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play(LONG)
        await lab.until(turn, "text-delta")
        outcomes = await asyncio.gather(*(lab.chat.cancel_chat(turn.request_id) for _ in range(5)))
        assert set(outcomes) <= {"cancelled", "already_terminal"}
        assert "cancelled" in outcomes
        result = await turn.result(10)
        assert result.status == "aborted"
        assert await lab.chat.cancel_chat(turn.request_id) == "already_terminal"
        assert await turn.result(10) == result
        ends = [c for c in await lab.chunks(turn) if c.is_end]
        assert [c.type for c in ends] == ["abort"]


async def test_a_stop_after_the_end_changes_nothing(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("ok")
        result = await turn.result(10)
        assert await lab.chat.cancel_chat(turn.request_id) == "already_terminal"
        storeless = await lab.storeless()
        await storeless.result(turn.request_id, timeout=10)  # for Temporal the turn ends a moment later
        assert await storeless.cancel_chat(turn.request_id) == "already_terminal"
        assert await turn.result(10) == result
        assert result.status == "completed"


async def test_a_stop_of_an_unknown_turn_says_so(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        assert await lab.chat.cancel_chat("never-heard-of") == "not_found"
        assert await (await lab.storeless()).cancel_chat("never-heard-of") == "not_found"


async def test_closing_a_stream_is_not_a_stop(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("text tokens=30 delay_ms=20")
        await lab.until(turn, "text-delta")
        result = await turn.result(20)
        assert (result.status, result.text.split()[-1]) == ("completed", "w0030")


@pytest.mark.parametrize("number", range(8))
async def test_a_turn_told_to_stop_right_after_it_was_sent_ends_aborted(
    start_lab: StartLab, scripted_server: ScriptedModelServer, number: int
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.submit(lab.thread(), "[[text tokens=30 delay_ms=10]]")
        await asyncio.sleep(number * 0.01)  # the cancel meets the turn in another phase each time
        assert await turn.cancel() == "cancelled"
        assert (await turn.result(20)).status == "aborted"
