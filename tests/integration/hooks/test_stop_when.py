"""stop_when: a turn that ends although the model would go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from everturn import TurnConfig, has_tool_call, spent, step_count_is
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.contexts import StepFacts, TurnContext
from tests.integration.hooks.authors import ADD, add, hooks, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent

asked: list[list[Any]] = []


def second_result(steps: Sequence[StepFacts]) -> bool:
    asked.append([result["output"] for step in steps for result in step.tool_results])
    return len(steps) == 2


async def never(steps: Sequence[StepFacts]) -> bool:
    return False


def breaks(steps: Sequence[StepFacts]) -> bool:
    raise ValueError("broken condition")


def not_a_bool(steps: Sequence[StepFacts]) -> Any:
    return "yes"


def stopping(*conditions: Any, name: str = "Stopping", **options: Any) -> Any:
    async def before_turn(self: Any, ctx: TurnContext) -> TurnConfig:
        return TurnConfig(stop_when=list(conditions))

    return hooks(name, before_turn=before_turn, **options)


FOREVER = f"tools forever=1 sequential=1 {ADD}"
RULES = [
    (has_tool_call("a*"), 1),
    (step_count_is(3), 3),
    (spent(tokens=1), 1),
    (spent(seconds=0.001), 1),
    (second_result, 2),
]


@pytest.mark.parametrize(("condition", "steps"), RULES, ids=["tool", "steps", "tokens", "seconds", "function"])
async def test_a_met_condition_ends_the_turn_after_the_step_and_its_tools(
    start_lab: StartLab, scripted_server: ScriptedModelServer, condition: Any, steps: int
) -> None:
    asked.clear()
    agent = make_agent(scripted_server, tools=[add], hooks=[stopping(condition)])
    async with start_lab(agent) as lab:
        turn = await lab.play(FOREVER)
        result = await turn.result(20)
        assert (result.status, result.stop_reason, result.steps) == ("completed", "stop_when", steps)
        info = await turn.info()
        assert [call.output for call in info.tool_calls] == [3] * steps
        history = await lab.raw_history(turn)
        assert ("everturn.on_step_finish" in history) is (condition is second_result), "rules cost no activity"
        if condition is second_result:
            assert asked == [[3], [3, 3]]
            assert [trace.changed for trace in traces(info, "stop_when")] == [[], ["stop"]]


async def test_conditions_of_several_hooks_add_up(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    chain = [stopping(step_count_is(5), name="one"), stopping(step_count_is(2), never, name="two")]
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=chain)) as lab:
        result = await (await lab.play(FOREVER)).result(20)
        assert (result.stop_reason, result.steps) == ("stop_when", 2)


async def test_an_answer_without_calls_ends_the_turn_by_itself(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[stopping(step_count_is(1), second_result)])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(20)).stop_reason == "end_turn"
        assert traces(await turn.info(), "stop_when") == []


@pytest.mark.parametrize(("condition", "outcome"), [(breaks, "error"), (not_a_bool, "invalid")])
async def test_a_condition_that_fails_is_traced_and_max_steps_still_bounds_the_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer, condition: Any, outcome: str
) -> None:
    agent = make_agent(scripted_server, tools=[add], hooks=[stopping(condition)], max_steps=2)
    async with start_lab(agent) as lab:
        turn = await lab.play(FOREVER)
        assert (await turn.result(20)).stop_reason == "max_steps"
        assert [trace.outcome for trace in traces(await turn.info(), "stop_when")] == [outcome] * 2


async def test_the_conditions_are_asked_after_on_step_finish_in_the_same_activity(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    asked.clear()
    order: list[str] = []

    async def on_step_finish(self: Any, ctx: Any) -> None:
        order.append(f"finish {len(asked)}")

    chain = [stopping(second_result), hooks(on_step_finish=on_step_finish)]
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=chain)) as lab:
        turn = await lab.play(FOREVER)
        await turn.result(20)
        assert order == ["finish 0", "finish 1"]
        assert (await lab.raw_history(turn)).count("everturn.on_step_finish") == 2
