"""The ready-made hooks on real turns."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Budget, Grounding, ReadOnly, Redact, tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import ADD, add, the_trace
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, shown_text

FOREVER = f"tools forever=1 sequential=1 {ADD}"


@pytest.mark.parametrize(
    ("limits", "stop_reason", "steps"),
    [
        ({"steps": 2}, "max_steps", 2),
        ({"tokens": 1}, "stop_when", 1),
        ({"seconds": 0.001}, "stop_when", 1),
        ({"steps": 3, "tokens": 10**9}, "max_steps", 3),
    ],
)
async def test_a_budget_ends_the_turn_that_has_used_it(
    start_lab: StartLab, scripted_server: ScriptedModelServer, limits: dict[str, Any], stop_reason: str, steps: int
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=[Budget(**limits)])) as lab:
        result = await (await lab.play(FOREVER)).result(20)
        assert (result.status, result.stop_reason, result.steps) == ("completed", stop_reason, steps)


async def test_a_budget_in_dollars_counts_an_unknown_price_as_free(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server, tools=[add], hooks=[Budget(cost=1e-9, steps=3)])
    async with start_lab(agent) as lab:
        result = await (await lab.play(FOREVER)).result(20)
        assert (result.usage.cost, result.stop_reason) == (None, "max_steps")


def test_budgets_that_say_nothing_are_refused() -> None:
    for wrong in ({}, {"steps": 0}, {"tokens": 0}, {"cost": -1.0}):
        with pytest.raises(ValueError, match=r"needs|must be"):
            Budget(**wrong)


async def test_read_only_blocks_matching_tools_and_lets_the_others_run(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    ran: list[str] = []

    @tool
    def delete_user(a: int, b: int) -> str:
        """Deletes."""
        ran.append("delete")
        return "gone"

    agent = make_agent(scripted_server, tools=[add, delete_user], hooks=[ReadOnly({"delete_*", "write_*"})])
    async with start_lab(agent) as lab:
        turn = await lab.play(f"tools calls=2 {ADD}")
        await turn.result(20)
        first, second = (await turn.info()).tool_calls
        assert (first.state, first.output) == ("done", 3)
        assert second.state == "blocked"
        assert "read-only" in str(second.output)
        assert ran == []


def test_read_only_without_patterns_is_refused() -> None:
    for wrong in ("delete_*", set[str]()):
        with pytest.raises(ValueError, match="set of tool-name patterns"):
            ReadOnly(wrong)


async def test_grounding_puts_what_it_finds_behind_the_system_prompt(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    questions: list[str] = []

    async def retrieve(question: str, ctx: Any) -> list[str]:
        questions.append(f"{ctx.principal.id}: {question}")
        return ["The shop opens at nine.", " It closes at five. "]

    agent = make_agent(scripted_server, system="You are a shop.", hooks=[Grounding(retrieve, header="Facts:")])
    async with start_lab(agent) as lab:
        turn = await lab.play("ok")
        await turn.result(20)
        system = lab.asked(turn)[0].body["messages"][0]["content"]
        assert system == "You are a shop.\n\nFacts:\n\nThe shop opens at nine.\n\nIt closes at five."
        assert questions == [f"None: [[ok]] {turn.thread_id}"]
        trace = the_trace(await turn.info(), "before_turn", "Grounding")
        assert (trace.changed, trace.logs[0]["message"]) == (["system"], "sources added")


@pytest.mark.parametrize("answer", [None, "", [], ValueError("no index")], ids=["none", "empty", "list", "raises"])
async def test_grounding_that_finds_nothing_or_fails_leaves_the_turn_alone(
    start_lab: StartLab, scripted_server: ScriptedModelServer, answer: Any
) -> None:
    def retrieve(question: str, ctx: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with start_lab(make_agent(scripted_server, system="Old.", hooks=[Grounding(retrieve)])) as lab:
        turn = await lab.play("ok")
        assert (await turn.result(20)).status == "completed"
        assert lab.asked(turn)[0].body["messages"][0]["content"] == "Old."


SECRET = "sk-1234567890"


async def test_redact_keeps_a_pattern_out_of_stream_store_and_tool_results(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    @tool
    def look_up(a: int, b: int) -> dict[str, str]:
        """Finds a key."""
        return {"key": f"the key is {SECRET[:6]}{SECRET[6:]}"}

    agent = make_agent(scripted_server, tools=[look_up], hooks=[Redact([r"sk-\d+"], window=40)])
    async with start_lab(agent) as lab:
        turn = await lab.play(f"tools say='your key {SECRET} is ready' {ADD}")
        result = await turn.result(20)
        assert result.text == "your key [redacted] is readydone: 1 results"
        chunks = await lab.chunks(turn)
        assert shown_text(chunks) == result.text
        assert SECRET not in str([chunk.data for chunk in chunks])
        (call,) = (await turn.info()).tool_calls
        assert call.output == {"key": "the key is [redacted]"}
        tool_message = lab.asked(turn)[1].body["messages"][-1]
        assert SECRET not in tool_message["content"]
        answer = (await lab.chat.messages(turn.thread_id))[1]
        assert SECRET not in str(answer.parts)


async def test_redact_finds_a_pattern_that_the_model_streams_in_pieces(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server, hooks=[Redact([r"w0002 w0003"], window=20)])
    async with start_lab(agent) as lab:
        turn = await lab.play("text tokens=5 delay_ms=30")
        result = await turn.result(20)
        assert result.text == "w0001 [redacted] w0004 w0005 "
        assert shown_text(await lab.chunks(turn)) == result.text
