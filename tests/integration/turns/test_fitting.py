"""Long threads: shortened when read, folded into a summary when they no longer fit, never changed in the store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import Agent, InvalidAgent
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.session import Compacted, ContextRequest, Session
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, make_agent

LONG = "fact " * 400


def configured(configure: Any) -> type[Agent]:
    class Configured(Agent):
        def configure_session(self, session: Session) -> Session | None:
            return configure(session)

    return Configured


async def talk(lab: Lab, thread: str, turns: int) -> None:
    for number in range(turns):
        result = await lab.run(thread, f"[[say text='answer {number}']] {LONG}")
        assert result.status == "completed"


async def test_a_prompt_that_the_provider_finds_too_long_is_compacted_and_asked_again_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    told: list[Compacted] = []
    base = configured(lambda session: session.on_compaction(told.append))
    async with start_lab(make_agent(scripted_server, base=base)) as lab:
        thread = lab.thread()
        await talk(lab, thread, 6)
        turn = await lab.submit(thread, f"[[overflow limit=9000]] last question of {thread}")
        result = await turn.result(30)
        assert (result.status, result.error) == ("completed", None)
        (facts,) = told
        assert facts.tokens_after < facts.tokens_before
        assert facts.folded >= 4
        prompt = lab.requests(f"last question of {thread}")[-1].body["messages"]
        assert "Summary of the earlier conversation" in prompt[0]["content"]
        assert len(await lab.chat.messages(thread)) == 14
        follow_up = await lab.run(thread, "[[say text=after]]")
        assert follow_up.text == "after"


async def test_a_thread_that_cannot_be_shortened_ends_with_the_overflow_error(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.submit(lab.thread(), f"[[overflow limit=10]] {LONG}")
        result = await turn.result(30)
        assert result.status == "error"
        assert result.error is not None
        assert "context" in result.error.type
        assert len(lab.requests(turn.request_id) or lab.requests("overflow limit=10")) == 1


async def test_a_session_limit_compacts_ahead_of_the_provider(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    told: list[Compacted] = []
    base = configured(lambda session: session.context_overflow(max_input_tokens=3000).on_compaction(told.append))
    async with start_lab(make_agent(scripted_server, base=base)) as lab:
        thread = lab.thread()
        await talk(lab, thread, 8)
        assert told
        assert all(request.status == 200 for request in lab.requests(thread))


async def test_context_blocks_are_assembled_once_per_thread(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    asked: list[str] = []

    async def orders(request: ContextRequest) -> str:
        asked.append(request.thread_id)
        return f"open orders of {request.thread_id}"

    base = configured(lambda s: s.context("Shop", "We sell tea.").context("Orders", orders))
    async with start_lab(make_agent(scripted_server, base=base, system="Be kind.")) as lab:
        thread = lab.thread()
        await lab.run(thread, "[[say text=one]]")
        await lab.run(thread, "[[say text=two]]")
        assert asked == [thread]
        system = lab.requests(f"open orders of {thread}")[-1].body["messages"][0]["content"]
        assert system == f"Be kind.\n\n## Shop\nWe sell tea.\n\n## Orders\nopen orders of {thread}"


async def test_old_tool_outputs_and_texts_are_cut_in_the_prompt_and_stay_whole_in_the_store(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    base = configured(lambda session: session.truncation(keep_last=2, text=50))
    async with start_lab(make_agent(scripted_server, base=base)) as lab:
        thread = lab.thread()
        await talk(lab, thread, 6)
        await lab.run(thread, f"[[say text=end]] look at {thread}")
        prompt = lab.requests(f"look at {thread}")[-1].body["messages"]
        lengths = [len(message["content"]) for message in prompt if message["role"] == "user"]
        assert lengths[:4] == [50 + len("… [cut]")] * 4
        assert lengths[4] > 1000
        assert all(len(m.text) > 1000 for m in await lab.chat.messages(thread) if m.role == "user" and LONG in m.text)


async def test_a_session_that_cannot_be_configured_fails_the_worker_start_and_names_the_agent(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    base = configured(lambda session: session.compact_after(0))
    with pytest.raises(InvalidAgent, match=r"agent 'agent'.*tokens must be a whole number from 1"):
        async with start_lab(make_agent(scripted_server, base=base)):
            pass


async def test_a_slow_compaction_callback_does_not_lose_the_step(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    told: list[int] = []

    async def slow(facts: Compacted) -> None:
        await asyncio.sleep(7)  # longer than Temporal waits for a heartbeat
        told.append(facts.folded)

    base = configured(lambda session: session.on_compaction(slow))
    async with start_lab(make_agent(scripted_server, base=base)) as lab:
        thread = lab.thread()
        await talk(lab, thread, 6)
        result = await lab.run(thread, f"[[overflow limit=9000]] slow question of {thread}")
        assert result.status == "completed"
        assert len(told) == 1
