"""before_tool_call and after_tool_call: every decision, alone and combined."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from everturn import Agent, Allow, Block, Hooks, Replace, Substitute, tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, hooks, the_trace, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, make_agent


def deciding(answer: Any, name: str = "Added", **options: Any) -> Hooks:
    async def before_tool_call(self: Any, ctx: Any) -> Any:
        return answer(ctx) if callable(answer) else answer

    return hooks(name, before_tool_call=before_tool_call, **options)


def presenting(answer: Any, name: str = "After", **options: Any) -> Hooks:
    async def after_tool_call(self: Any, ctx: Any) -> Any:
        return answer(ctx) if callable(answer) else answer

    return hooks(name, after_tool_call=after_tool_call, **options)


async def one_call(lab: Lab) -> tuple[Any, str, Any]:
    """Plays a turn with one call of `add`: the call as stored, what the model saw of it, the turn's info."""
    turn = await lab.play(f"tools {ADD}")
    assert (await turn.result(20)).status == "completed"
    info = await turn.info()
    (call,) = info.tool_calls
    seen = [m["content"] for m in lab.asked(turn)[-1].body["messages"] if m["role"] == "tool"]
    shown = [c.data for c in await lab.chunks(turn) if c.type in ("tool-output-available", "tool-output-error")]
    assert len(shown) == 1, "the outcome is shown once"
    assert shown[0].get("output") == call.output
    assert shown[0].get("errorText") == call.error
    return call, seen[0], info


ran: list[tuple[int, int]] = []


@tool(name="add")
async def noted_add(a: int, b: int) -> int:
    """Adds two numbers."""
    ran.append((a, b))
    return a + b


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@pytest.mark.parametrize("answer", [None, Allow()])
async def test_allow_lets_the_tool_run_as_asked(
    start_lab: StartLab, scripted_server: ScriptedModelServer, answer: Any
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=[deciding(answer)])) as lab:
        call, seen, _ = await one_call(lab)
    assert (call.state, call.output, seen, ran) == ("done", 3, "3", [(1, 2)])


async def test_allow_with_an_input_runs_the_tool_with_it_and_keeps_what_the_model_asked(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    after: list[Any] = []
    chain = [deciding(Allow(input={"a": 10, "b": 20})), presenting(after.append)]
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=chain)) as lab:
        call, seen, info = await one_call(lab)
    assert (call.input, call.output, seen, ran) == ({"a": 10, "b": 20}, 30, "30", [(10, 20)])
    assert (after[0].input, after[0].model_input) == ({"a": 10, "b": 20}, {"a": 1, "b": 2})
    assert the_trace(info, "before_tool_call").changed == ["input"]


async def test_an_added_hook_may_edit_the_input_in_place_and_the_agent_may_not(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    class Editing(Agent):
        async def before_tool_call(self, ctx: Any) -> None:
            ctx.input["a"] = 1000

    def edit(ctx: Any) -> None:
        ctx.input["b"] = 5

    agent = make_agent(scripted_server, tools=[noted_add], hooks=[deciding(edit)], base=Editing)
    async with start_lab(agent) as lab:
        await one_call(lab)
    assert ran == [(1, 5)]


async def test_a_later_hook_sees_the_input_as_rewritten_so_far(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    chain = [
        deciding(Allow(input={"a": 10, "b": 20}), "one"),
        deciding(lambda ctx: Allow(input={**ctx.input, "b": ctx.input["b"] + 1}), "two"),
    ]
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=chain)) as lab:
        await one_call(lab)
    assert ran == [(10, 21)]


BAD_INPUTS: list[Any] = [{"a": "ten"}, {}, {"a": 1, "b": 2, "c": 3}, ["a"], "a"]


@pytest.mark.parametrize("rewritten", BAD_INPUTS, ids=repr)
async def test_a_rewritten_input_that_does_not_fit_is_an_error_result_and_the_tool_does_not_run(
    start_lab: StartLab, scripted_server: ScriptedModelServer, rewritten: Any
) -> None:
    after: list[Any] = []
    chain = [deciding(Allow(input=rewritten)), presenting(after.append)]
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=chain)) as lab:
        call, seen, _ = await one_call(lab)
    assert (call.state, ran) == ("error", [])
    assert call.error in seen
    assert (after[0].success, after[0].error) == (False, call.error)


async def test_an_input_that_is_edited_into_something_without_a_json_form_is_an_error_result(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    def edit(ctx: Any) -> None:
        ctx.input = {"a": object(), "b": 1}

    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=[deciding(edit)])) as lab:
        call, _, _ = await one_call(lab)
    assert (call.state, ran) == ("error", [])


async def test_a_rewritten_input_becomes_json_before_it_is_stored(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    @tool(name="add")
    async def dated(a: date) -> str:
        """Takes a day."""
        return a.isoformat()

    hook = deciding(Allow(input={"a": date(2026, 1, 2)}))
    async with start_lab(make_agent(scripted_server, tools=[dated], hooks=[hook])) as lab:
        turn = await lab.play('tools args=\'{"a": "2020-01-01"}\'')
        await turn.result(15)
        (call,) = (await turn.info()).tool_calls
    assert (call.input, call.output) == ({"a": "2026-01-02"}, "2026-01-02")


async def test_block_does_not_run_the_tool_and_its_reason_is_the_result(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    after: list[Any] = []
    chain = [deciding(Block("Not on Sundays.")), presenting(after.append)]
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=chain)) as lab:
        call, seen, info = await one_call(lab)
    assert (call.state, call.output, seen, ran) == ("blocked", "Not on Sundays.", "Not on Sundays.", [])
    assert (after[0].success, after[0].output) == (True, "Not on Sundays.")
    assert the_trace(info, "before_tool_call").changed == ["block"]


async def test_substitute_does_not_run_the_tool_and_its_output_is_the_result(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    after: list[Any] = []
    chain = [deciding(Substitute({"cached": 3})), presenting(after.append)]
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=chain)) as lab:
        call, seen, _ = await one_call(lab)
    assert (call.state, call.output, seen, ran) == ("substituted", {"cached": 3}, '{"cached": 3}', [])
    assert (after[0].success, after[0].output) == (True, {"cached": 3})


REWRITE = Allow(input={"a": 7, "b": 7})
COMBINATIONS = [
    ([REWRITE, Block("no")], "blocked"),
    ([Block("no"), REWRITE], "blocked"),
    ([Substitute(1), Block("no")], "blocked"),
    ([REWRITE, Substitute(1)], "substituted"),
    ([Substitute(1), REWRITE], "substituted"),
    ([None, REWRITE, None], "done"),
]


@pytest.mark.parametrize(("answers", "state"), COMBINATIONS)
async def test_the_strongest_of_several_decisions_counts(
    start_lab: StartLab, scripted_server: ScriptedModelServer, answers: list[Any], state: str
) -> None:
    chain = [deciding(answer, f"hook{number}") for number, answer in enumerate(answers)]
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=chain)) as lab:
        call, _, _ = await one_call(lab)
    assert call.state == state
    assert ran == ([(7, 7)] if state == "done" else [])


async def test_a_block_ends_the_chain(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    asked: list[Any] = []
    chain = [deciding(Block("no"), "one"), deciding(asked.append, "two")]
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=chain)) as lab:
        await one_call(lab)
    assert asked == []


def breaks(ctx: Any) -> None:
    raise ValueError("broken hook")


@pytest.mark.parametrize(("on_error", "state"), [("continue", "done"), ("raise", "error"), ("deny", "blocked")])
async def test_a_failing_added_hook_before_a_tool_follows_its_on_error(
    start_lab: StartLab, scripted_server: ScriptedModelServer, on_error: str, state: str
) -> None:
    hook = deciding(breaks, on_error=on_error)
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=[hook])) as lab:
        call, _, info = await one_call(lab)
    assert call.state == state
    assert bool(ran) is (state == "done")
    assert the_trace(info, "before_tool_call").outcome == "error"


async def test_a_raise_of_the_agents_own_method_is_an_error_result_and_the_turn_goes_on(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    after: list[Any] = []

    class Broken(Agent):
        async def before_tool_call(self, ctx: Any) -> None:
            breaks(ctx)

        async def after_tool_call(self, ctx: Any) -> None:
            after.append(ctx.success)

    async with start_lab(make_agent(scripted_server, tools=[noted_add], base=Broken)) as lab:
        call, seen, _ = await one_call(lab)
    assert (call.state, ran, after) == ("error", [], [False])
    assert "broken hook" in seen


async def test_replace_is_what_model_and_clients_see_and_the_tools_own_output_stays_stored(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    chain = [
        presenting(lambda ctx: Replace({"sum": ctx.output}), "one"),
        presenting(lambda ctx: Replace({**ctx.output, "checked": True}), "two"),
    ]
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=chain)) as lab:
        call, seen, info = await one_call(lab)
        stored = await lab.store.call(info.turn.request_id, call.tool_call_id)
    assert call.output == {"sum": 3, "checked": True}
    assert seen == '{"sum": 3, "checked": true}'
    assert stored.raw_output == 3
    assert [trace.changed for trace in traces(info, "after_tool_call")] == [["output"], ["output"]]


async def test_a_replacement_without_a_json_form_is_ignored_and_traced(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    class Broken(Agent):
        async def after_tool_call(self, ctx: Any) -> Replace:
            return Replace(object())

    added = presenting(Replace(object()))
    async with start_lab(make_agent(scripted_server, tools=[noted_add], hooks=[added], base=Broken)) as lab:
        call, seen, info = await one_call(lab)
    assert (call.output, seen) == (3, "3")
    assert [trace.outcome for trace in traces(info, "after_tool_call")] == ["invalid", "invalid"]


async def test_a_failing_check_of_an_output_withholds_it_if_its_hook_denies(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(
        make_agent(scripted_server, tools=[noted_add], hooks=[presenting(breaks, on_error="deny")])
    ) as lab:
        call, seen, _ = await one_call(lab)
    assert "withheld" in str(call.error)
    assert "withheld" in seen
    assert call.output is None


async def test_after_tool_call_sees_the_outcome_of_a_tool_that_raised(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    after: list[Any] = []

    @tool(name="add")
    def broken(a: int, b: int) -> int:
        """Fails."""
        raise ValueError("no network")

    async with start_lab(make_agent(scripted_server, tools=[broken], hooks=[presenting(after.append)])) as lab:
        _, seen, _ = await one_call(lab)
    (ctx,) = after
    assert (ctx.tool_name, ctx.tool_call_id, ctx.step) == ("add", "call_0_0", 0)
    assert (ctx.success, ctx.output, ctx.error) == (False, None, "ValueError: no network")
    assert ctx.duration_ms >= 0
    assert "no network" in seen


async def test_a_call_that_is_refused_for_its_input_reaches_after_tool_call_only(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    before: list[Any] = []
    after: list[Any] = []
    chain = [deciding(before.append), presenting(after.append)]
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=chain)) as lab:
        turn = await lab.play("bad_args")
        await turn.result(15)
    assert before == []
    assert [ctx.success for ctx in after] == [False]


@pytest.mark.parametrize("leave", [SystemExit(1), StopIteration()], ids=["exit", "stop"])
async def test_a_tool_that_tries_to_end_the_process_is_an_error_result(
    start_lab: StartLab, scripted_server: ScriptedModelServer, leave: BaseException
) -> None:
    @tool(name="add")
    def leaving(a: int, b: int) -> int:
        """Leaves."""
        raise leave

    async with start_lab(make_agent(scripted_server, tools=[leaving])) as lab:
        call, _, _ = await one_call(lab)
        assert call.state == "error"
        assert (await (await lab.play("ok")).result(10)).text == "ok", "the worker lives on"
