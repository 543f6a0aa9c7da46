"""before_step and on_step_finish."""

from __future__ import annotations

from typing import Any

from everturn import StepConfig, StepResult, TurnConfig
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, hooks, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent


def stepping(answer: Any, name: str = "Added") -> Any:
    async def before_step(self: Any, ctx: Any) -> Any:
        return answer(ctx)

    return hooks(name, before_step=before_step)


async def test_the_config_of_a_step_holds_for_that_step_only(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    def only_first(ctx: Any) -> StepConfig | None:
        if ctx.step:
            return None
        return StepConfig(system="First.", tool_choice="required", provider_options={"frequency_penalty": 0.5})

    agent = make_agent(scripted_server, system="Always.", tools=[add], hooks=[stepping(only_first)])
    async with start_lab(agent) as lab:
        turn = await lab.play(f"tools {ADD}")
        await turn.result(15)
        first, second = (request.body for request in lab.asked(turn))
        assert (first["messages"][0]["content"], first["tool_choice"]) == ("First.", "required")
        assert first["frequency_penalty"] == 0.5
        assert second["messages"][0]["content"] == "Always."
        assert "tool_choice" not in second
        assert "frequency_penalty" not in second
        changed = [trace.changed for trace in traces(await turn.info(), "before_step")]
        assert changed == [["provider_options", "system", "tool_choice"], []]


async def test_the_step_overrides_the_turn_and_active_tools_narrow_further(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async def before_turn(self: Any, ctx: Any) -> TurnConfig:
        return TurnConfig(system="Turn.", active_tools=["add"])

    both = [hooks("Turn", before_turn=before_turn), stepping(lambda ctx: StepConfig(system="Step.", active_tools=[]))]
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=both)) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        body = lab.asked(turn)[0].body
        assert body["messages"][0]["content"] == "Step."
        assert not body.get("tools")


async def test_messages_of_a_step_are_all_that_the_model_sees_and_nothing_is_doubled(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    def reminded(ctx: Any) -> StepConfig:
        return StepConfig(messages=[*ctx.messages, {"role": "user", "content": f"reminder {ctx.step}"}])

    async with start_lab(make_agent(scripted_server, tools=[add], hooks=[stepping(reminded)])) as lab:
        turn = await lab.play(f"tools say=calling {ADD}")
        assert (await turn.result(15)).text == "callingdone: 1 results"
        first, second = ([m["role"] for m in request.body["messages"]] for request in lab.asked(turn))
        assert first == ["user", "user"]
        assert second == ["user", "assistant", "tool", "user"]


async def test_a_step_sees_the_finished_steps_of_its_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[Any] = []

    async with start_lab(make_agent(scripted_server, tools=[add], hooks=[stepping(seen.append)])) as lab:
        turn = await lab.play(f"tools {ADD}")
        await turn.result(15)
    assert [ctx.step for ctx in seen] == [0, 1]
    assert seen[0].steps == ()
    (before,) = seen[1].steps
    assert before.tool_calls[0]["input"] == {"a": 1, "b": 2}
    assert before.tool_results[0]["output"] == 3
    assert seen[1].model == "openai/scripted"
    assert [message["role"] for message in seen[1].messages] == ["user", "assistant", "tool"]


async def test_on_step_finish_gets_the_full_record_of_the_step(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[StepResult] = []

    async def on_step_finish(self: Any, ctx: StepResult) -> None:
        seen.append(ctx)

    agent = make_agent(scripted_server, tools=[add], hooks=[hooks(on_step_finish=on_step_finish)])
    async with start_lab(agent) as lab:
        turn = await lab.play(f"tools say='I add' {ADD}")
        result = await turn.result(15)
    first, second = seen
    assert (first.step, first.text, first.finish_reason) == (0, "I add", "tool_calls")
    assert first.tool_calls == [
        {"tool_call_id": "call_0_0", "tool_name": "add", "input": {"a": 1, "b": 2}, "raw_input": None}
    ]
    assert first.tool_results[0]["output"] == 3
    assert first.usage.input_tokens > 0
    assert first.usage.output_tokens > 0
    assert (first.model_attempt, first.attempt) == (1, 1)
    assert first.request == {"model": "openai/scripted", "tools": ["add"]}
    assert first.response["id"]
    assert (second.step, second.text, second.tool_calls) == (1, "done: 1 results", [])
    assert result.usage.total_tokens == first.usage.total_tokens + second.usage.total_tokens


async def test_the_attempt_of_the_model_call_is_told_apart_from_the_attempt_of_the_hook(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[StepResult] = []

    async def on_step_finish(self: Any, ctx: StepResult) -> None:
        seen.append(ctx)

    async with start_lab(make_agent(scripted_server, hooks=[hooks(on_step_finish=on_step_finish)])) as lab:
        turn = await lab.play("rate_limit times=1 retry_after_ms=10")
        await turn.result(15)
    assert [(ctx.model_attempt, ctx.attempt) for ctx in seen] == [(2, 1)]
