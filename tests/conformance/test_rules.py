"""Rules of the turn lifecycle that no other test is about."""

from __future__ import annotations

import threading
from typing import Any

from temporalio.client import Client

from everturn import Agent, Allow, TurnConfig, default_context_overflow_classifier, tool
from everturn.hooks.points import HOOK_POINTS
from everturn.hooks.session import Compacted, Session
from everturn.testing import Crash, ModelError, call, run_turn, running
from tests.integration.hooks.authors import add, hooks


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def agent_with(**attributes: Any) -> Agent:
    made: Agent = type("Ruled", (Agent,), {"name": "ruled", "model": "openai/any", **attributes})()
    return made


async def note(self: object, *arguments: Any) -> None: ...


async def test_hooks_fire_in_a_turn_that_waited_for_a_person_as_in_any_other(client: Client) -> None:
    watch = hooks("Watch", **dict.fromkeys(HOOK_POINTS, note))
    async with running(
        agent_with(tools=(pay,), hooks=(watch,)), model=[call("pay", amount=3), "Done."], client=client
    ) as s:
        turn = await s.chat.submit("t", "pay", agent="ruled")
        async for chunk in turn.stream():
            if chunk.type == "tool-approval-request":
                (waiting,) = await s.chat.pending("t")
                await s.chat.approve(turn.request_id, waiting.tool_call_id)
        run = await s.finished(turn)
    points = [name.removeprefix("Watch.") for name in run.hook_order]
    step = ["before_step", "on_chunk"]
    calls = ["before_tool_call", "after_tool_call"]
    assert points == [
        "before_turn",
        *(*step, *calls, "on_step_finish"),
        *(*step, "on_step_finish"),
        "on_chat_response",
        "on_turn_end",
    ]


async def test_hooks_fire_in_a_turn_that_was_recovered_and_none_is_left_out(client: Client) -> None:
    watch = hooks("Watch", **dict.fromkeys(HOOK_POINTS, note))
    agent = agent_with(tools=(add,), hooks=(watch,))
    script = [call("add", a=1, b=2), "Three."]
    crashes = [Crash("before_turn"), Crash("model_step", "after"), Crash("finish", "after")]
    plain = await run_turn(agent, "sum", model=script, client=client)
    recovered = await run_turn(agent, "sum", model=script, crashes=crashes, client=client)
    assert recovered.hook_order == plain.hook_order


async def test_an_input_that_a_human_approved_is_not_rewritten_any_more(client: Client) -> None:
    async def doubles(self: object, ctx: Any) -> Allow:
        return Allow(input={"amount": ctx.input["amount"] * 2})

    agent = agent_with(tools=(pay,), hooks=(hooks("Doubles", before_tool_call=doubles),))
    async with running(agent, model=[call("pay", amount=3), "Done."], client=client) as s:
        turn = await s.chat.submit("t", "pay", agent="ruled")
        async for chunk in turn.stream():
            if chunk.type == "tool-approval-request":
                (waiting,) = await s.chat.pending("t")
                assert waiting.input == {"amount": 6}, "the person sees what would run"
                await s.chat.approve(turn.request_id, waiting.tool_call_id, input={"amount": 1})
        run = await s.finished(turn)
    assert run.info.tool_calls[0].output == "paid 1"
    assert len(run.hooks("before_tool_call")) == 1


async def test_context_blocks_stay_when_a_hook_replaces_the_instructions(client: Client) -> None:
    def configure_session(self: object, session: Session) -> Session:
        return session.context("House rules", "Never shout.")

    async def before_turn(self: object, ctx: Any) -> TurnConfig:
        return TurnConfig(system="You are new here.")

    agent = agent_with(system="You are old.", configure_session=configure_session, before_turn=before_turn)
    run = await run_turn(agent, "hi", model="Hi.", client=client)
    system = run.prompts[0]["messages"][0]["content"]
    assert "You are new here." in system
    assert "Never shout." in system
    assert "You are old." not in system


async def test_max_input_tokens_compacts_the_thread_ahead_of_the_provider(client: Client) -> None:
    compacted: list[Compacted] = []
    threads: set[threading.Thread] = set()

    def note(facts: Compacted) -> None:
        threads.add(threading.current_thread())
        compacted.append(facts)

    def configure_session(self: object, session: Session) -> Session:
        return session.context_overflow(max_input_tokens=600).on_compaction(note)

    agent = agent_with(configure_session=configure_session)
    async with running(agent, model=["First call.", "Second call."], client=client) as system:
        texts = [(await system.run_turn("word " * 60, thread_id="t")).text for _ in range(10)]
    assert compacted
    assert threading.main_thread() not in threads, "a plain function does not hold up the event loop"
    assert compacted[0].tokens_before > 540
    assert compacted[0].summary == "First call."
    assert "Second call." in texts, "the step came after the summary"


async def test_the_overflow_classifier_knows_what_a_classifier_of_the_agent_is_given(client: Client) -> None:
    told: list[Any] = []

    async def classify_chat_error(self: object, error: Exception | str, ctx: Any) -> str | None:
        told.append(default_context_overflow_classifier(error))
        return "fatal"

    words = "This model's maximum context length is 100 tokens. However, your messages resulted in 200 tokens."
    for script in (ModelError(400, words), ModelError(after="Some", message=words), ModelError(429, words)):
        await run_turn(agent_with(classify_chat_error=classify_chat_error), "hi", model=script, client=client)
    assert told == ["context_overflow", "context_overflow", None]
