"""What a failing hook does to its turn: by its origin, and by its on_error."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from everturn import Agent, Hooks, TurnConfig
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, hooks, the_trace, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, shown_text


async def raises(self: Any, ctx: Any) -> None:
    raise ValueError("broken hook")


async def hangs(self: Any, ctx: Any) -> None:
    await asyncio.Event().wait()


async def answers_too_much(self: Any, ctx: Any) -> TurnConfig:
    return TurnConfig(system="x" * 200 * 1024)


async def answers_a_dict(self: Any, ctx: Any) -> dict[str, str]:
    return {"system": "other"}


async def edits_into_nonsense(self: Any, ctx: Any) -> None:
    ctx.temperature = "hot"


async def edits_into_something_without_json(self: Any, ctx: Any) -> None:
    ctx.messages = [{"role": "user", "content": threading.Lock()}]


async def leaves_a_state_without_json(self: Any, ctx: Any) -> TurnConfig:
    ctx.state["lock"] = threading.Lock()
    return TurnConfig(system="other")


async def leaves_a_huge_state(self: Any, ctx: Any) -> TurnConfig:
    ctx.state["all"] = "x" * 200 * 1024
    return TurnConfig(system="other")


FAULTS = [
    (raises, "error", "ValueError: broken hook"),
    (hangs, "timeout", "took longer than 0.2 s"),
    (answers_too_much, "oversize", "the limit is 131,072"),
    (answers_a_dict, "invalid", "returned dict"),
    (edits_into_nonsense, "invalid", "temperature"),
    (edits_into_something_without_json, "invalid", "JSON"),
    (leaves_a_state_without_json, "invalid", "ctx.state"),
    (leaves_a_huge_state, "oversize", "ctx.state"),
]


@pytest.mark.parametrize(("before_turn", "outcome", "said"), FAULTS, ids=[fault[0].__name__ for fault in FAULTS])
async def test_a_failing_added_hook_leaves_the_turn_as_it_was_and_turn_and_trace_say_why(
    start_lab: StartLab, scripted_server: ScriptedModelServer, before_turn: Any, outcome: str, said: str
) -> None:
    faulty = hooks("Faulty", before_turn=before_turn, timeout=0.2)
    async with start_lab(make_agent(scripted_server, system="Old.", hooks=[faulty])) as lab:
        turn = await lab.play("ok")
        result = await turn.result(15)
        assert (result.status, result.text) == ("completed", "ok")
        (request,) = lab.asked(turn)
        assert request.body["messages"][0]["content"] == "Old."
        assert "temperature" not in request.body
        info = await turn.info()
        trace = the_trace(info, "before_turn")
        assert (trace.hook, trace.outcome, trace.changed) == ("Faulty", outcome, [])
        assert said in str(trace.message)
        assert f"({outcome})" in str(info.before_turn_hook_error)
        assert said in str(info.before_turn_hook_error)


async def test_a_failing_hook_does_not_undo_what_the_others_decided(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async def seeds(self: Any, ctx: Any) -> TurnConfig:
        return TurnConfig(seed=1)

    async def warms(self: Any, ctx: Any) -> TurnConfig:
        return TurnConfig(temperature=0.5)

    chain = [hooks("One", before_turn=seeds), hooks("Faulty", before_turn=raises), hooks("Two", before_turn=warms)]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        body = lab.asked(turn)[0].body
        assert (body["seed"], body["temperature"]) == (1, 0.5)


@pytest.mark.parametrize("point", ["before_turn", "before_step"])
async def test_an_agents_own_failing_method_fails_the_turn_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer, point: str
) -> None:
    stages: list[str] = []

    async def on_chat_error(self: Any, error: Any, ctx: Any) -> None:
        stages.append(ctx.stage)

    base = type("Broken", (Agent,), {point: raises, "on_chat_error": on_chat_error})
    async with start_lab(make_agent(scripted_server, base=base)) as lab:
        turn = await lab.play("ok")
        result = await turn.result(15)
        assert result.status == "error"
        assert result.error is not None
        assert result.error.type == "HookFailed"
        assert "broken hook" in result.error.message
        assert lab.asked(turn) == []
        assert stages == ["turn"]
        info = await turn.info()
        assert the_trace(info, point).outcome == "error"
        assert bool(info.before_turn_hook_error) is (point == "before_turn")


@pytest.mark.parametrize("point", ["before_turn", "before_step"])
async def test_on_error_raise_makes_an_added_hook_count_like_the_agents_own_method(
    start_lab: StartLab, scripted_server: ScriptedModelServer, point: str
) -> None:
    faulty = hooks("Faulty", **{point: raises}, on_error="raise")
    async with start_lab(make_agent(scripted_server, hooks=[faulty])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(15)).status == "error"
        assert lab.asked(turn) == []


@pytest.mark.parametrize("before_turn", [raises, hangs, answers_too_much, answers_a_dict, edits_into_nonsense])
async def test_on_error_deny_blocks_the_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer, before_turn: Any
) -> None:
    faulty = hooks("Faulty", before_turn=before_turn, on_error="deny", timeout=0.2)
    async with start_lab(make_agent(scripted_server, hooks=[faulty])) as lab:
        turn = await lab.play("ok")
        result = await turn.result(15)
        assert result.status == "blocked"
        assert "broken" not in shown_text(await lab.chunks(turn))
        assert lab.asked(turn) == []


async def test_a_denial_before_a_step_never_lets_the_model_be_called(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[hooks(before_step=raises, on_error="deny")])) as lab:
        turn = await lab.play("ok")
        result = await turn.result(15)
        assert (result.status, lab.asked(turn)) == ("error", [])


async def test_a_failing_added_hook_before_a_step_is_traced_and_the_step_runs(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[hooks(before_step=raises)])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(15)).status == "completed"
        info = await turn.info()
        assert the_trace(info, "before_step").outcome == "error"
        assert info.before_turn_hook_error is None


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize("point", ["on_step_finish", "after_tool_call", "on_chunk"])
async def test_points_that_only_observe_are_traced_whoever_fails(
    start_lab: StartLab, scripted_server: ScriptedModelServer, point: str, added: bool
) -> None:
    async def broken(self: Any, *arguments: Any) -> None:
        raise ValueError("broken hook")

    owner: dict[str, Any] = {"hooks": [hooks(**{point: broken}, on_error="raise")]}
    if not added:
        owner = {"base": type("Broken", (Agent,), {point: broken})}
    async with start_lab(make_agent(scripted_server, tools=[add], **owner)) as lab:
        turn = await lab.play(f"tools {ADD}")
        result = await turn.result(15)
        assert (result.status, result.text) == ("completed", "done: 1 results")
        found = traces(await turn.info(), point)
        assert {trace.outcome for trace in found} == {"error"}
        assert "broken hook" in str(found[0].message)


async def test_log_lines_carry_the_tag_of_point_and_hook_and_keep_their_limits(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async def talks(self: Any, ctx: Any) -> None:
        for number in range(60):
            ctx.log(f"line {number}", {"n": number}, "warn")
        raise ValueError("after talking")

    async def shouts(self: Any, ctx: Any) -> None:
        ctx.log("y" * 10_000)

    async def silent(self: Any, ctx: Any) -> None: ...

    chain: list[Hooks] = [
        hooks("Talks", before_turn=talks),
        hooks("Shouts", before_turn=shouts),
        hooks("Silent", before_turn=silent),
    ]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        turn = await lab.play("ok")
        await turn.result(15)
        info = await turn.info()
        lines = the_trace(info, "before_turn", "Talks").logs
        first = {"tag": "hook:before_turn:Talks", "level": "warn", "message": "line 0", "data": {"n": 0}}
        assert (len(lines), lines[0], lines[-1]["dropped"]) == (50, first, 10)
        (cut,) = the_trace(info, "before_turn", "Shouts").logs
        assert len(cut["message"].encode()) <= 4096
        assert cut["message"].endswith("[cut]")
        assert the_trace(info, "before_turn", "Silent").logs == []
