"""on_chat_response and on_turn_end: after the turn, at least once, without changing it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import Agent, Block, ChatClient, Hooks, Turn
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import hooks, traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, eventually, make_agent


async def ended_workflow(lab: Lab, turn: Turn) -> Any:
    """The workflow's own result: it is there when the hooks after the turn have run."""
    handle = lab.client.get_workflow_handle(turn.workflow_id)
    return await asyncio.wait_for(handle.result(), 20)


@pytest.mark.parametrize("point", ["on_chat_response", "on_turn_end"])
@pytest.mark.parametrize("added", [True, False])
async def test_a_failing_hook_after_the_turn_is_retried_and_traced_and_the_turn_stays_completed(
    start_lab: StartLab, scripted_server: ScriptedModelServer, point: str, added: bool
) -> None:
    async def broken(self: Any, result: Any) -> None:
        raise ValueError("broken hook")

    owner: dict[str, Any] = {"hooks": [hooks("Broken", **{point: broken})]}
    if not added:
        owner = {"base": type("Broken", (Agent,), {point: broken})}
    async with start_lab(make_agent(scripted_server, **owner)) as lab:
        turn = await lab.play("say text=fine")
        assert (await ended_workflow(lab, turn))["status"] == "completed"
        result = await turn.result(10)
        assert (result.status, result.text, result.error) == ("completed", "fine", None)
        assert [trace.outcome for trace in traces(await turn.info(), point)] == ["error"] * 3


async def test_a_retry_runs_only_the_hooks_that_have_not_succeeded(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[str] = []

    def after(name: str, failures: int) -> Hooks:
        async def on_chat_response(self: Any, result: Any) -> None:
            seen.append(name)
            if seen.count(name) <= failures:
                raise ValueError("not yet")

        return hooks(name, on_chat_response=on_chat_response)

    async with start_lab(
        make_agent(scripted_server, hooks=[after("one", 0), after("two", 1), after("three", 0)])
    ) as lab:
        await ended_workflow(lab, await lab.play("ok"))
    assert seen == ["one", "two", "three", "two"]


async def test_on_chat_response_may_submit_the_next_turn_of_its_thread(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    following: list[Turn] = []

    class Chaining(Agent):
        chat: ChatClient

        async def on_chat_response(self, result: Any) -> None:
            if not following:
                following.append(
                    await self.chat.submit(
                        result.thread_id, "[[say text=second]]", agent="agent", request_id=result.request_id + "-next"
                    )
                )
                assert (await following[0].result(15)).text == "second"

    agent = make_agent(scripted_server, base=Chaining)
    async with start_lab(agent) as lab:
        agent.chat = lab.chat  # type: ignore[attr-defined]  # Chaining's
        turn = await lab.play("say text=first")
        await ended_workflow(lab, turn)
        texts = [message.text for message in await lab.chat.messages(turn.thread_id) if message.role == "assistant"]
        assert texts == ["first", "second"]
        assert [trace.outcome for trace in traces(await turn.info(), "on_chat_response")] == ["ok"]


async def test_on_chat_response_sees_the_message_as_stored_and_the_turn_as_over(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[Any] = []

    async def on_chat_response(self: Any, result: Any) -> None:
        seen.append(result)
        result.message.parts.clear()

    async with start_lab(make_agent(scripted_server, hooks=[hooks(on_chat_response=on_chat_response)])) as lab:
        turn = await lab.play("say text=fine")
        await ended_workflow(lab, turn)
        stored = (await lab.chat.messages(turn.thread_id))[1]
        (result,) = seen
        assert (result.message.id, result.message.role) == (stored.id, "assistant")
        assert (result.status, result.stop_reason, result.error) == ("completed", "end_turn", None)
        assert result.usage == (await turn.result(5)).usage
        assert stored.text == "fine"


async def test_on_turn_end_sees_every_ending(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    ends: dict[str, tuple[Any, ...]] = {}
    responses: list[str] = []

    class Watching(Agent):
        async def before_turn(self, ctx: Any) -> Block | None:
            return Block("no") if ctx.body else None

        async def on_chat_response(self, result: Any) -> None:
            responses.append(result.request_id)

        async def on_turn_end(self, result: Any) -> None:
            text = result.message.text if result.message else None
            ends[result.request_id] = (result.status, result.stop_reason, text)

    async with start_lab(make_agent(scripted_server, base=Watching)) as lab:
        completed = await lab.play("say text=fine")
        blocked = await lab.play("ok", body={"block": True})
        failed = await lab.play("status code=400")
        aborted = await lab.play("stall tokens=2")
        await lab.until(aborted, "text-delta")
        queued = await lab.play("ok", aborted.thread_id)
        assert await queued.cancel() == "cancelled"
        assert (await queued.result(15)).status == "aborted"
        assert await aborted.cancel() == "cancelled"
        assert (await aborted.result(15)).status == "aborted"

        async def all_ended() -> bool:
            return len(ends) == 5

        await eventually(all_ended, f"five turns ended: {ends}", 20)
    assert ends == {
        completed.request_id: ("completed", "end_turn", "fine"),
        blocked.request_id: ("blocked", "blocked", "no"),
        failed.request_id: ("error", "error", None),
        aborted.request_id: ("aborted", "cancelled", "w0001 w0002 "),
        queued.request_id: ("aborted", "cancelled", None),
    }
    assert sorted(responses) == sorted([completed.request_id, blocked.request_id, aborted.request_id])


async def test_on_turn_end_sees_a_turn_that_was_cancelled_before_any_worker_ran(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    ends: dict[str, str] = {}

    class Watching(Agent):
        def on_turn_end(self, result: Any) -> None:
            ends[result.request_id] = result.status

    agent = make_agent(scripted_server, base=Watching)
    async with start_lab(agent) as lab:
        await lab.workers[0].shutdown()
        turn = await lab.submit(lab.thread(), "[[say text=never]]")
        assert await turn.cancel() == "cancelled"
    async with start_lab(agent):

        async def ended() -> bool:
            return turn.request_id in ends

        await eventually(ended, "the withdrawn turn ended", 20)
    assert ends == {turn.request_id: "aborted"}
