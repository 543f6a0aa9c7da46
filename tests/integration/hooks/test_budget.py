"""Budgets of threads and users, on real turns."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from everturn import Budget, Principal, TurnConfig, spent
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.contexts import StepContext, TurnContext
from everturn.turns import UsageSum
from tests.integration.hooks.authors import ADD, add, hooks, the_trace, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, make_agent

FOREVER = f"tools forever=1 sequential=1 {ADD}"
DAY = timedelta(days=1)


async def test_a_thread_that_has_used_its_budget_is_blocked_with_the_reason_and_other_threads_are_not(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    budget = Budget(scope="thread", window=DAY, steps=2)
    async with start_lab(make_agent(scripted_server, hooks=[budget])) as lab:
        first = await lab.play("ok")
        assert (await first.result(WAIT)).status == "completed"
        assert (await lab.run(first.thread_id, "[[ok]]")).status == "completed"
        third = await lab.submit(first.thread_id, "[[ok]]")
        refused = await third.result(WAIT)
        assert refused.status == "blocked"
        assert refused.text == "The budget of this conversation is used up: 2 of 2 model calls in the last 1 day."
        assert len(lab.asked(first)) == 2
        trace = the_trace(await third.info(), "before_turn", "Budget of a thread in 1 day")
        assert (trace.changed, trace.logs[0]["message"]) == (["block"], "budget used up")
        assert (await lab.run(lab.thread(), "[[ok]]")).status == "completed"


async def test_a_user_has_one_budget_in_all_threads_of_a_tenant_and_the_author_words_the_refusal(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    budget = Budget(scope="user", tokens=1, reason="Come back tomorrow.")
    async with start_lab(make_agent(scripted_server, hooks=[budget])) as lab:

        async def asks(principal: Principal | None, tenant: str | None) -> str:
            result = await lab.run(lab.thread(), "[[ok]]", principal=principal, tenant_id=tenant)
            return f"{result.status}: {result.text}"

        ann = Principal("ann", email="ann@example.com")
        assert await asks(ann, "x") == "completed: ok"
        assert await asks(Principal("ann"), "x") == "blocked: Come back tomorrow."
        assert await asks(ann, "y") == "completed: ok"
        assert await asks(Principal("ben"), "x") == "completed: ok"
        assert await asks(None, None) == "completed: ok"
        assert await asks(Principal(is_anonymous=True), None) == "blocked: Come back tomorrow."


async def test_a_turn_stops_in_the_middle_when_its_users_budget_runs_out(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[add], hooks=[Budget(scope="user", steps=3)])) as lab:
        await lab.run(lab.thread(), "[[ok]]", principal=Principal("cy"))
        turn = await lab.play(FOREVER, principal=Principal("cy"))
        result = await turn.result(WAIT)
        assert (result.status, result.stop_reason, result.steps) == ("completed", "stop_when", 2)
        (trace,) = traces(await turn.info(), "stop_when", "spent")
        assert (trace.message, trace.step) == ("the user has used 3 of 3 model calls", 1)


async def test_what_another_turn_uses_meanwhile_stops_this_one_too(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async def before_turn(self: Any, ctx: TurnContext) -> TurnConfig:
        return TurnConfig(stop_when=spent(steps=4, scope="user"), max_steps=50)

    other_is_over = asyncio.Event()

    async def before_step(self: Any, ctx: StepContext) -> None:
        if ctx.step == 1 and ctx.body == {"waits": True}:
            await asyncio.wait_for(other_is_over.wait(), WAIT)

    agent = make_agent(scripted_server, tools=[add], hooks=[hooks(before_turn=before_turn, before_step=before_step)])
    async with start_lab(agent) as lab:
        waiting = await lab.play(FOREVER, principal=Principal("dan"), body={"waits": True})
        await lab.until(waiting, "finish-step")
        other = await lab.play(FOREVER, principal=Principal("dan"))
        assert (await other.result(WAIT)).steps == 3
        other_is_over.set()
        result = await waiting.result(WAIT)
        assert (result.stop_reason, result.steps) == ("stop_when", 2)


async def test_hooks_may_ask_what_was_used_before_a_turn_and_before_a_step(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[UsageSum] = []

    async def note(self: Any, ctx: Any) -> None:
        seen.append(await ctx.used("thread", DAY))

    async with start_lab(
        make_agent(scripted_server, tools=[add], hooks=[hooks(before_turn=note, before_step=note)])
    ) as lab:
        turn = await lab.play(f"tools {ADD}")
        result = await turn.result(WAIT)
        assert [(used.turns, used.steps) for used in seen] == [(1, 0), (1, 0), (1, 1)]
        assert 0 < seen[2].usage.total_tokens < result.usage.total_tokens
        assert seen[2].model_seconds > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scope": "user"}, "at least one limit"),
        ({"scope": "team", "tokens": 1}, "scope must be one of"),
        ({"scope": "turn", "tokens": 1, "window": DAY}, "a window needs scope"),
        ({"scope": "turn", "steps": 1, "window": DAY}, "a window needs scope"),
        ({"tokens": 1, "reason": "no"}, "blocks nothing"),
        ({"scope": "thread", "cost": 0.0}, "above 0"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Budget(**wrong)
