"""everturn.testing, used as an author of agents would."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from everturn import Agent, BadInput, Block, Hooks, Model, ResultTimeout, TurnConfig, tool
from everturn.errors import InvalidAgent
from everturn.hooks.points import HOOK_POINTS
from everturn.testing import (
    CRASH_POINTS,
    Crash,
    ModelError,
    Reply,
    ScriptedModel,
    assert_replays,
    call,
    run_turn,
    running,
)
from everturn.testing.server import ELSEWHERE


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


class Adder(Agent):
    name = "adder"
    model = "anthropic/claude-somewhere"  # never asked: there is no key
    system = "You add."
    tools = (add,)


async def test_a_turn_follows_its_script_without_a_key(client: Client) -> None:
    run = await run_turn(Adder(), "1 + 2?", model=[call("add", a=1, b=2), "It is three."], client=client)
    assert (run.status, run.text) == ("completed", "It is three.")
    assert [(c.tool_name, c.input, c.output) for c in run.info.tool_calls] == [("add", {"a": 1, "b": 2}, 3)]
    first, second = run.prompts
    assert first["model"] == "anthropic/claude-somewhere"
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert second["messages"][-1]["content"] == "3"
    assert [chunk.type for chunk in run.chunks][-1] == "finish"


async def test_answers_can_depend_on_the_words_of_the_user(client: Client) -> None:
    model = ScriptedModel("Hello.", when={"thank": "You are welcome.", "sum": [call("add", a=2, b=2), "Four."]})
    async with running(Adder(), model=model, client=client) as system:
        said = [(await system.run_turn(text, thread_id="one")).text for text in ("hi", "the sum?", "thank you", "hi")]
    assert said == ["Hello.", "Four.", "You are welcome.", "Hello."]


async def test_several_calls_of_one_step_and_a_reply_with_reasoning(client: Client) -> None:
    both = [call("add", a=1, b=1), call("add", a=2, b=2)]
    reply = Reply("Two and four.", reasoning="Easy enough.", finish="length")
    run = await run_turn(Adder(), "two sums", model=[both, reply], client=client)
    assert [c.output for c in run.info.tool_calls] == [2, 4]
    assert [step.finish_reason for step in run.info.steps] == ["tool_calls", "length"]
    assert "Easy enough." in "".join(c.data["delta"] for c in run.chunks if c.type == "reasoning-delta")


async def test_an_error_of_the_model_is_retried_and_each_turn_meets_it_anew(client: Client) -> None:
    model = [ModelError(503, retry_after=0.01), ModelError(after="half a", message="broken"), "Whole."]
    async with running(Adder(), model=model, client=client) as system:
        for _ in range(2):
            run = await system.run_turn("same words")
            assert (run.text, run.info.attempts_failed, len(run.prompts)) == ("Whole.", 2, 3)


async def test_an_empty_answer_is_asked_for_again(client: Client) -> None:
    run = await run_turn(Adder(), "hm", model=["", "Here."], client=client)
    assert (run.text, len(run.prompts)) == ("Here.", 2)


async def test_a_turn_that_asks_for_more_than_the_script_has_says_so(client: Client) -> None:
    with pytest.raises(AssertionError, match="answers for 1 model calls of a turn, and this is call 2"):
        await run_turn(Adder(), "1 + 2?", model=call("add", a=1, b=2), client=client)


def test_a_script_without_answers_is_refused() -> None:
    with pytest.raises(BadInput, match="needs an answer"):
        ScriptedModel()


async def test_the_order_of_all_hooks_is_recorded_up_to_the_last_one(client: Client) -> None:
    async def note(self: Any, *arguments: Any) -> None: ...

    points = [point for point in HOOK_POINTS if "error" not in point]
    everywhere = type("Everywhere", (Hooks,), dict.fromkeys(points, note))
    agent = type("Own", (Adder,), {"before_turn": note, "hooks": [everywhere()]})
    run = await run_turn(agent(), "1 + 2?", model=[call("add", a=1, b=2), "Three."], client=client)
    step = ["Everywhere.before_step", "Everywhere.on_chunk"]
    tools = ["Everywhere.before_tool_call", "Everywhere.after_tool_call"]
    end = ["Everywhere.on_step_finish"]
    assert run.hook_order == [
        "agent.before_turn",
        "Everywhere.before_turn",
        *(*step, *tools, *end),
        *(*step, *end),
        "Everywhere.on_chat_response",
        "Everywhere.on_turn_end",
    ]


async def test_what_a_hook_decided_and_logged_can_be_asked(client: Client) -> None:
    async def before_turn(self: Any, ctx: Any) -> TurnConfig:
        ctx.log("warmer")
        return TurnConfig(temperature=0.9, model="openai/another")

    run = await run_turn(type("Warm", (Adder,), {"before_turn": before_turn})(), "hi", model="Hi.", client=client)
    (trace,) = run.hooks("before_turn", "agent")
    assert (trace.outcome, trace.changed, trace.logs[0]["message"]) == ("ok", ["model", "temperature"], "warmer")
    assert (run.prompts[0]["model"], run.prompts[0]["temperature"]) == ("another", 0.9)


async def test_a_blocked_turn_has_no_prompts(client: Client) -> None:
    async def before_turn(self: Any, ctx: Any) -> Block:
        return Block("not today")

    run = await run_turn(type("Closed", (Adder,), {"before_turn": before_turn})(), "hi", model="Hi.", client=client)
    assert (run.status, run.text, run.prompts) == ("blocked", "not today", [])


async def test_turns_side_by_side_have_their_own_prompts_and_answers(client: Client) -> None:
    model = ScriptedModel(when={"sum": [call("add", a=1, b=2), "Three."], "hi": "Hello."})
    async with running(Adder(), model=model, client=client) as system:
        runs = await asyncio.gather(*(system.run_turn(text) for text in ("sum", "hi", "sum", "hi")))
    assert [(run.text, len(run.prompts)) for run in runs] == [("Three.", 2), ("Hello.", 1)] * 2


async def test_the_history_of_a_turn_replays_and_another_one_does_not(client: Client) -> None:
    run = await run_turn(Adder(), "1 + 2?", model=[call("add", a=1, b=2), "Three."], client=client)
    await assert_replays(run.history)
    other = run.history.from_json("other", run.history.to_json().replace("everturn.run_tool", "everturn.other_tool"))
    with pytest.raises(AssertionError, match="'other' does not replay"):
        await assert_replays(other)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", CRASH_POINTS)
async def test_a_turn_recovers_from_a_crash_at_every_point_with_one_answer_and_one_effect(
    client: Client, point: Any, when: Any
) -> None:
    effects: list[int] = []

    @tool
    async def charge(amount: int) -> str:
        """Charges a card."""
        effects.append(amount)
        return "charged"

    async def note(self: Any, *arguments: Any) -> None: ...

    given = {"name": "payer", "model": "openai/none", "tools": (charge,), **dict.fromkeys(HOOK_POINTS, note)}
    agent: Agent = type("Payer", (Agent,), given)()
    script = ModelError(400) if point == "on_chat_error" else [call("charge", amount=5), "Paid."]
    async with running(agent, model=script, crashes=[Crash(point, when)], client=client) as system:
        run = await system.run_turn("pay 5", thread_id="t")
        assert system.pending_crashes == []
        roles = [message.role for message in await system.chat.messages("t")]
    await assert_replays(run.history)
    if point == "on_chat_error":
        assert (run.status, roles) == ("error", ["user"])
        return
    assert (run.status, run.text, roles) == ("completed", "Paid.", ["user", "assistant"])
    lost_at_work = (point, when) == ("run_tool", "before")
    assert effects == ([] if lost_at_work and run.info.tool_calls[0].state == "unknown" else [5])
    assert len(run.info.steps) == 2


def test_every_activity_of_a_turn_that_can_lose_work_is_a_crash_point() -> None:
    from everturn.workflows.arrows import Arrows

    arrows = {name for name, value in vars(Arrows).items() if not name.startswith("_") and callable(value)}
    not_work = {"stop", "cancel_in_flight", "interrupt", "check_predecessor", "compact", "open_wait", "resolve_wait"}
    assert set(CRASH_POINTS) == arrows - not_work


async def test_a_crash_point_that_does_not_exist_is_refused(client: Client) -> None:
    with pytest.raises(BadInput, match="'nowhere'; use one of begin"):
        async with running(Adder(), model="Hi.", crashes=[Crash("nowhere")], client=client):  # type: ignore[arg-type]
            pass


async def test_an_agent_that_cannot_start_raises_where_the_system_starts(client: Client) -> None:
    def configure_session(self: Any, session: Any) -> None:
        raise ValueError("no session")

    agent = type("Broken", (Adder,), {"configure_session": configure_session})()
    with pytest.raises(InvalidAgent, match=r"adder.*no session"):
        await run_turn(agent, "hi", model="Hi.", client=client)


async def test_a_missing_key_is_no_obstacle_and_the_error_of_a_model_names_it_as_the_agent_does(client: Client) -> None:
    named = Model("openai/gpt-5", api_key_env="A_VARIABLE_THAT_IS_NOT_SET")
    run = await run_turn(type("Keyed", (Adder,), {"model": named})(), "hi", model=ModelError(400), client=client)
    assert run.status == "error"
    assert "'openai/gpt-5'" in str(run.result.error)


async def test_a_turn_that_does_not_end_in_time_is_named(client: Client) -> None:
    async def before_turn(self: Any, ctx: Any) -> None:
        await asyncio.Event().wait()

    agent = type("Slow", (Adder,), {"before_turn": before_turn})()
    with pytest.raises(ResultTimeout, match=r"not over after 0\.2 s"):
        await run_turn(agent, "hi", model="Hi.", client=client, timeout=0.2)


async def test_several_agents_have_to_be_told_apart(client: Client) -> None:
    second = type("Second", (Adder,), {"name": "second"})()
    async with running(Adder(), second, model="Hi.", client=client) as system:
        with pytest.raises(BadInput, match="adder, second; say which"):
            await system.run_turn("hi")
        assert (await system.run_turn("hi", agent="second")).info.turn.agent == "second"


async def test_a_turn_that_waits_can_be_answered_and_then_finished(client: Client) -> None:
    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    agent = type("Careful", (Adder,), {"tools": (pay,)})()
    async with running(agent, model=[call("pay", amount=3), "Done."], client=client) as system:
        turn = await system.chat.submit("t", "pay 3", agent="adder")
        async for chunk in turn.stream():
            if chunk.type == "tool-approval-request":
                (waiting,) = await system.chat.pending("t")
                assert await system.chat.approve(turn.request_id, waiting.tool_call_id) == "accepted"
        run = await system.finished(turn)
    assert (run.text, run.info.tool_calls[0].output) == ("Done.", "paid 3")


async def test_without_a_script_the_agents_own_model_answers(client: Client) -> None:
    run = await run_turn(type("Demo", (Adder,), {"model": "demo"})(), "echo hello", client=client)
    assert (run.status, run.text, run.prompts) == ("completed", "hello", [])


PLAIN_TESTS = """
import asyncio
from everturn import Agent
from everturn.testing import run_turn

class Greeter(Agent):
    name = "greeter"
    model = "openai/gpt-4o-mini"

def test_one():
    assert asyncio.run(run_turn(Greeter(), "hi", model="Hello.")).text == "Hello."

def test_two_on_another_event_loop():
    assert asyncio.run(run_turn(Greeter(), "hi", model="Hello again.")).text == "Hello again."
"""


def test_plain_pytest_without_a_plugin_or_a_server_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ELSEWHERE, raising=False)
    (tmp_path / "test_greeter.py").write_text(textwrap.dedent(PLAIN_TESTS))
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:asyncio", "-p", "no:timeout", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
