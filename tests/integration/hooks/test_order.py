"""Which hooks are called, and in which order, on real turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import Agent, Hooks, Order, tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, hooks, recording, traces, without_repeats
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_turn_with_two_tool_calls_visits_every_point_in_the_order_of_the_contract(
    start_lab: StartLab, scripted_server: ScriptedModelServer, asynchronous: bool
) -> None:
    seen: list[str] = []

    @tool
    async def noted(a: int, b: int) -> int:
        """Adds two numbers."""
        seen.append("tool")
        return a + b

    added: Hooks = recording(seen, "added", asynchronous=asynchronous)()
    base = recording(seen, "agent", asynchronous=asynchronous, base=Agent)
    async with start_lab(make_agent(scripted_server, tools=[noted], hooks=[added], base=base)) as lab:
        turn = await lab.play(f"tools calls=2 sequential=1 {ADD}")
        assert (await turn.result(20)).status == "completed"
        await asyncio.wait_for(until_seen(seen, "added.on_turn_end"), 10)

    def both(point: str) -> list[str]:
        return [f"agent.{point}", f"added.{point}"]

    with_call = [
        *both("before_step"),
        "chunks",
        *both("before_tool_call"),
        "tool",
        *both("after_tool_call"),
        *both("on_step_finish"),
    ]
    assert without_repeats("chunks" if call.endswith("on_chunk") else call for call in seen) == [
        *both("before_turn"),
        *with_call,
        *with_call,
        *both("before_step"),
        "chunks",
        *both("on_step_finish"),
        *both("on_chat_response"),
        *both("on_turn_end"),
    ]


async def until_seen(seen: list[str], call: str) -> None:
    while call not in seen:
        await asyncio.sleep(0.01)


async def test_two_calls_of_one_step_each_have_their_own_pair_of_hooks_and_results_in_call_order(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[tuple[str, str]] = []
    second_ran = asyncio.Event()

    @tool
    async def wait_for_other(a: int) -> str:
        """Returns when the other call has run."""
        await asyncio.wait_for(second_ran.wait(), 10)
        return "first"

    @tool
    async def other(a: int) -> str:
        """Lets the first call go on."""
        second_ran.set()
        return "second"

    async def before(self: Any, ctx: Any) -> None:
        seen.append((ctx.tool_call_id, "before"))

    async def after(self: Any, ctx: Any) -> None:
        seen.append((ctx.tool_call_id, f"after {ctx.output}"))

    results: list[Any] = []

    async def finish(self: Any, ctx: Any) -> None:
        results.append([result["output"] for result in ctx.tool_results])

    watcher = hooks(before_tool_call=before, after_tool_call=after, on_step_finish=finish)
    async with start_lab(make_agent(scripted_server, tools=[wait_for_other, other], hooks=[watcher])) as lab:
        turn = await lab.play("tools calls=2 args='{\"a\": 1}'")
        await turn.result(20)
        info = await turn.info()
    by_call = {call_id: [what for of, what in seen if of == call_id] for call_id, _ in seen}
    assert by_call == {"call_0_0": ["before", "after first"], "call_0_1": ["before", "after second"]}
    assert [call.output for call in info.tool_calls] == ["first", "second"]
    assert results[0] == ["first", "second"]


async def test_added_hooks_run_in_the_order_that_their_constraints_demand(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[str] = []

    def named(name: str, **order: str) -> Hooks:
        async def before_turn(self: Any, ctx: Any) -> None:
            seen.append(name)

        return hooks(name, before_turn=before_turn, order=Order(**order))

    chain = [named("last", after="first"), named("middle"), named("first", before="middle")]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        turn = await lab.play("ok")
        await turn.result(10)
        assert [trace.hook for trace in traces(await turn.info(), "before_turn")] == seen
    assert seen.index("first") < seen.index("last")
    assert seen.index("first") < seen.index("middle")


async def test_a_point_that_nobody_implements_leaves_no_event_in_the_history(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[Hooks()])) as lab:
        bare = await lab.play("ok")
        await bare.result(10)
        history = await lab.raw_history(bare)
    for point in ("before_turn", "before_step", "on_step_finish", "on_chat_response", "on_turn_end"):
        assert f"everturn.{point}" not in history


async def test_tool_hooks_are_called_only_for_the_tools_that_they_match(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[str] = []

    async def before(self: Any, ctx: Any) -> None:
        seen.append(ctx.tool_name)

    @tool
    async def delete_user(a: int, b: int) -> str:
        """Deletes."""
        return "gone"

    guard = hooks(tools={"delete_*"}, before_tool_call=before, after_tool_call=before)
    async with start_lab(make_agent(scripted_server, tools=[add, delete_user], hooks=[guard])) as lab:
        turn = await lab.play(f"tools calls=2 {ADD}")
        await turn.result(20)
        info = await turn.info()
        history = await lab.raw_history(turn)
    assert [call.tool_name for call in info.tool_calls] == ["add", "delete_user"]
    assert seen == ["delete_user", "delete_user"]
    assert history.count("everturn.before_tool_call") == history.count("everturn.after_tool_call") == 1
