"""What tools and calls of tools can do to a turn: wrong names, wrong arguments, exceptions, odd values, time."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from everturn import Hooks, ToolCallResultContext, ToolContext, tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, make_agent, shown_text

SECRET = "sk-tool-secret-0123456789abcdef"
RUNS: list[Any] = []


class Place(BaseModel):
    name: str
    since: datetime


@tool
async def echo_number(number: int) -> int:
    """Returns its number."""
    RUNS.append(number)
    return number


@tool
async def fail(reason: str) -> str:
    """Always fails."""
    RUNS.append(reason)
    raise RuntimeError(reason)


def results_told(lab: Lab, turn: Any) -> list[str]:
    """The tool results in the last request of a turn."""
    return [m["content"] for m in lab.asked(turn)[-1].body["messages"] if m["role"] == "tool"]


@pytest.fixture(autouse=True)
def no_runs() -> None:
    RUNS.clear()


async def test_an_invented_tool_name_is_answered_with_the_valid_ones(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[echo_number, fail])) as lab:
        turn = await lab.play("unknown_tool name=drop_tables")
        result = await turn.result(20)
        assert (result.status, result.text) == ("completed", "done: 1 results")
        (told,) = results_told(lab, turn)
        assert "drop_tables" in told
        assert "echo_number" in told
        assert "fail" in told


async def test_arguments_that_fit_no_schema_are_answered_with_the_wrong_fields(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[echo_number])) as lab:
        turn = await lab.play("bad_args")
        assert (await turn.result(20)).status == "completed"
        (told,) = results_told(lab, turn)
        assert "number" in told
        assert "wrong" in told
        assert RUNS == []


async def test_identical_invalid_calls_end_the_turn_after_the_third(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[echo_number])) as lab:
        turn = await lab.play("bad_args forever=1")
        result = await turn.result(20)
        assert (result.status, result.stop_reason, result.steps) == ("completed", "tool_loop", 3)
        assert len(lab.asked(turn)) == 3


async def test_identical_failing_calls_end_the_turn_after_the_third(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[fail])) as lab:
        turn = await lab.play('loop args=\'{"reason": "no luck"}\'')
        result = await turn.result(20)
        assert (result.status, result.stop_reason, result.steps) == ("completed", "tool_loop", 3)
        assert RUNS == ["no luck"] * 3


async def test_identical_succeeding_calls_go_on_to_the_limit_of_steps(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[echo_number], max_steps=4)) as lab:
        turn = await lab.play("loop args='{\"number\": 7}'")
        result = await turn.result(20)
        assert (result.status, result.stop_reason, result.steps) == ("completed", "max_steps", 4)
        assert RUNS == [7] * 4
        following = await lab.play("say text=fine", turn.thread_id)
        assert (await following.result(20)).text == "fine"


async def test_parallel_calls_run_side_by_side_and_settle_alone_in_call_order(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    together = asyncio.Barrier(3)
    settled: list[str] = []

    @tool
    async def slow() -> str:
        """Ends last."""
        await together.wait()
        while len(settled) < 2:
            await asyncio.sleep(0.005)
        settled.append("slow")
        return "slow"

    @tool
    async def broken() -> str:
        """Raises."""
        await together.wait()
        settled.append("broken")
        raise ValueError("broken on purpose")

    @tool
    async def quick() -> str:
        """Ends at once."""
        await together.wait()
        settled.append("quick")
        return "quick"

    async with start_lab(make_agent(scripted_server, tools=[slow, broken, quick])) as lab:
        turn = await lab.play("tools calls=3 args='{}'")
        result = await turn.result(20)
        assert (result.status, result.text) == ("completed", "done: 3 results")
        assert settled[-1] == "slow"
        calls = (await turn.info()).tool_calls
        assert [(c.tool_name, c.state) for c in calls] == [("slow", "done"), ("broken", "error"), ("quick", "done")]
        told = results_told(lab, turn)
        assert (told[0], told[2]) == ("slow", "quick")
        assert "broken on purpose" in told[1]


async def test_a_large_output_is_stored_whole_and_shown_cut_with_a_mark(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    whole = "0123456789" * 300_000

    @tool
    async def dump() -> str:
        """Returns 3 MB."""
        return whole

    async with start_lab(make_agent(scripted_server, tools=[dump])) as lab:
        turn = await lab.play("tools args='{}'")
        result = await turn.result(30)
        assert (result.status, result.text) == ("completed", "done: 1 results")
        (call,) = (await turn.info()).tool_calls
        stored = await lab.store.call(turn.request_id, call.tool_call_id)
        assert stored.raw_output == whole
        (told,) = results_told(lab, turn)
        assert len(told) < 1_100_000
        assert "[cut" in told
        assert sum(event.ByteSize() for event in await lab.history(turn)) < 50_000


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00"),
        (b"plain bytes", "plain bytes"),
        (b"\xff\xfe", "__4="),
        (Place(name="Rome", since=datetime(2026, 1, 1, tzinfo=UTC)), "Rome"),
        ({3}, "[3]"),
        (None, "null"),
        (float("nan"), "NaN"),
        ({"bytes": b"\xff\xfe"}, '{"bytes": "__4="}'),
        (memoryview(b"seen"), "seen"),
        ({(1, 2): "tuple key"}, "tuple key"),
        ("lone \ud800 surrogate", "surrogate"),
        ("a \x00 in it", "in it"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else repr(value)[:12],
)
async def test_python_values_become_sensible_json(
    start_lab: StartLab, scripted_server: ScriptedModelServer, value: object, told: str
) -> None:
    @tool
    async def give() -> object:
        """Returns a value."""
        return value

    async with start_lab(make_agent(scripted_server, tools=[give])) as lab:
        turn = await lab.play("tools args='{}'")
        assert (await turn.result(20)).text == "done: 1 results"
        assert told in results_told(lab, turn)[0]


@pytest.mark.parametrize("value", [object(), asyncio.Lock(), lambda: None], ids=["object", "lock", "f"])
async def test_a_value_without_a_json_form_is_an_error_that_names_its_type(
    start_lab: StartLab, scripted_server: ScriptedModelServer, value: object
) -> None:
    @tool
    async def give() -> object:
        """Returns a value."""
        return value

    async with start_lab(make_agent(scripted_server, tools=[give])) as lab:
        turn = await lab.play("tools args='{}'")
        assert (await turn.result(20)).status == "completed"
        (call,) = (await turn.info()).tool_calls
        assert call.state == "error"
        assert type(value).__name__ in results_told(lab, turn)[0]


async def test_a_circular_value_is_an_error_result(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    @tool
    async def give() -> object:
        """Returns a list that contains itself."""
        endless: list[object] = []
        endless.append(endless)
        return endless

    async with start_lab(make_agent(scripted_server, tools=[give])) as lab:
        turn = await lab.play("tools args='{}'")
        assert (await turn.result(20)).status == "completed"
        assert (await turn.info()).tool_calls[0].state == "error"


async def test_a_blocking_tool_does_not_hold_up_other_turns(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    times: list[float] = []

    @tool
    def block() -> str:
        """Blocks its thread."""
        times.append(time.monotonic())
        time.sleep(4)
        times.append(time.monotonic())
        return "unblocked"

    async with start_lab(make_agent(scripted_server, tools=[block])) as lab:
        blocked = await lab.play("tools args='{}'")
        await lab.until(blocked, "tool-input-available")
        other = await lab.play("text tokens=60 delay_ms=30")
        seen = [time.monotonic() async for chunk in other.stream() if chunk.type == "text-delta"]
        assert (await blocked.result(20)).text == "done: 1 results"
        assert (await blocked.info()).tool_calls[0].output == "unblocked"
        inside = [at for at in seen if times[0] < at < times[1]]
        assert len(inside) > 20
        assert max(later - earlier for earlier, later in itertools.pairwise(inside)) < 1.0


@pytest.mark.parametrize("text", [f"refused: api_key={SECRET}", "x" * 1_000_000], ids=["secret", "long"])
async def test_the_text_of_an_exception_is_cut_and_scrubbed_and_has_no_traceback(
    start_lab: StartLab, scripted_server: ScriptedModelServer, text: str
) -> None:
    @tool
    async def explode() -> str:
        """Raises."""
        raise RuntimeError(text)

    async with start_lab(make_agent(scripted_server, tools=[explode])) as lab:
        turn = await lab.play("tools args='{}'")
        chunks = await lab.chunks(turn)
        assert (await turn.result(20)).status == "completed"
        (told,) = results_told(lab, turn)
        shown = next(c.data["errorText"] for c in chunks if c.type == "tool-output-error")
        for seen in (told, shown):
            assert "RuntimeError" in seen
            assert len(seen) < 5_000
            assert "Traceback" not in seen
            assert "test_tool_cases" not in seen
        assert SECRET not in lab.stored_text() + await lab.raw_history(turn) + json.dumps(lab.asked(turn)[-1].body)


async def test_a_tool_that_takes_too_long_is_stopped_and_the_model_is_told(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    stopped = asyncio.Event()

    @tool(timeout=0.3)
    async def endless() -> str:
        """Never ends."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    @tool(timeout=0.3)
    def endless_in_a_thread() -> str:
        """Ends far too late."""
        time.sleep(1.5)
        return "late"

    async with start_lab(make_agent(scripted_server, tools=[endless, endless_in_a_thread])) as lab:
        turn = await lab.play("tools calls=2 args='{}'")
        assert (await turn.result(20)).text == "done: 2 results"
        assert all("longer than 0.3 s" in told for told in results_told(lab, turn))
        await asyncio.wait_for(stopped.wait(), 5)
        assert all((call.duration_ms or 0) < 1500 for call in (await turn.info()).tool_calls)


@pytest.mark.parametrize(("failures", "state"), [(2, "done"), (5, "error")])
async def test_a_tool_with_retries_runs_again_and_no_more_often_than_that(
    start_lab: StartLab, scripted_server: ScriptedModelServer, failures: int, state: str
) -> None:
    keys: list[str] = []

    @tool(retries=2)
    async def flaky(ctx: ToolContext) -> str:
        """Fails a few times."""
        keys.append(ctx.idempotency_key)
        if len(keys) <= failures:
            raise RuntimeError(f"failure {len(keys)}")
        return "at last"

    async with start_lab(make_agent(scripted_server, tools=[flaky])) as lab:
        turn = await lab.play("tools args='{}'")
        assert (await turn.result(20)).status == "completed"
        assert len(keys) == 3
        assert len(set(keys)) == 1
        assert (await turn.info()).tool_calls[0].state == state
        assert results_told(lab, turn)[0] == "at last" if state == "done" else "failure 3" in results_told(lab, turn)[0]


async def test_a_generator_tool_shows_preliminary_outputs_and_its_last_value_counts(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    @tool
    async def count() -> AsyncIterator[int]:
        """Counts."""
        for number in (1, 2, 3):
            yield number

    async with start_lab(make_agent(scripted_server, tools=[count])) as lab:
        turn = await lab.play("tools args='{}'")
        chunks = await lab.chunks(turn)
        outputs = [c.data for c in chunks if c.type == "tool-output-available"]
        assert [data["output"] for data in outputs] == [1, 2, 3, 3]
        assert [data.get("preliminary", False) for data in outputs] == [True, True, True, False]
        assert (await turn.info()).tool_calls[0].output == 3
        assert shown_text(chunks) == "done: 1 results"


@pytest.mark.parametrize("threaded", [False, True])
async def test_progress_is_shown_to_clients_before_the_output(
    start_lab: StartLab, scripted_server: ScriptedModelServer, threaded: bool
) -> None:
    @tool(name="work")
    async def on_the_loop(ctx: ToolContext) -> str:
        """Reports."""
        for done in range(20):
            ctx.progress({"done": done})
        return "worked"

    @tool(name="work")
    def in_a_thread(ctx: ToolContext) -> str:
        """Reports."""
        for done in range(20):
            ctx.progress({"done": done})
        return "worked"

    async with start_lab(make_agent(scripted_server, tools=[in_a_thread if threaded else on_the_loop])) as lab:
        turn = await lab.play("tools args='{}'")
        chunks = await lab.chunks(turn)
        progress = [c for c in chunks if c.type == "data-tool-progress"]
        assert [c.data["value"]["done"] for c in progress] == list(range(20))
        output = next(c for c in chunks if c.type == "tool-output-available")
        assert progress[-1].seq < output.seq
        assert progress[0].data["toolCallId"] == output.data["toolCallId"]


async def test_a_tool_with_a_context_sees_its_turn_and_the_model_does_not_see_the_context(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    @tool
    async def who(ctx: ToolContext) -> list[Any]:
        """Tells the facts."""
        return [ctx.request_id, ctx.thread_id, ctx.body]

    async with start_lab(make_agent(scripted_server, tools=[who])) as lab:
        turn = await lab.play("tools args='{}'", body={"cart": 7})
        assert (await turn.result(20)).status == "completed"
        assert (await turn.info()).tool_calls[0].output == [turn.request_id, turn.thread_id, {"cart": 7}]
        assert lab.asked(turn)[0].body["tools"][0]["function"]["parameters"]["properties"] == {}


async def test_a_call_that_cannot_run_is_shown_once_although_a_hook_watches_outcomes(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    outcomes: list[bool] = []

    class Watcher(Hooks):
        def after_tool_call(self, ctx: ToolCallResultContext) -> None:
            outcomes.append(ctx.success)

    async with start_lab(make_agent(scripted_server, hooks=[Watcher()])) as lab:
        turn = await lab.submit(lab.thread(), "[[unknown_tool]]")
        chunks = await lab.chunks(turn)
    assert outcomes == [False]
    assert [chunk.type for chunk in chunks].count("tool-output-error") == 1
