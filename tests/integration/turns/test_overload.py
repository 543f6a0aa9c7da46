"""More turns than a thread or a tenant may have: refused clearly, with nothing half done."""

from __future__ import annotations

import asyncio

import pytest

from everturn import TooBusy
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, make_agent


async def _crowded(lab: Lab, queued: int) -> str:
    """A thread with a running turn and queued ones."""
    running = await lab.play("text tokens=4000 delay_ms=20")
    await lab.until(running, "text-delta")
    for _ in range(queued):
        await lab.until(await lab.play("ok", running.thread_id), "data-queued")
    return running.thread_id


async def test_submitting_to_a_thread_with_too_long_a_queue_raises_and_starts_nothing(
    start_lab: StartLab, scripted_server: ScriptedModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERTURN_MAX_QUEUED_PER_THREAD", "2")
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = await _crowded(lab, 2)
        turns, request_id = await lab.chat.list_turns(thread), lab.thread()
        with pytest.raises(TooBusy, match=f"thread '{thread}' has 2 queued turns and the limit is 2"):
            await lab.submit(thread, "[[ok]]", request_id=request_id)
        assert await lab.chat.list_turns(thread) == turns
        assert await lab.chat.cancel_chat(request_id) == "not_found"


async def test_a_client_that_reaches_temporal_alone_learns_it_as_the_turns_error(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server), max_queued_per_thread=1) as lab:
        thread = await _crowded(lab, 1)
        chat = await lab.storeless()
        refused = await chat.submit(thread, "[[say text=late]]", agent="agent")
        result = await refused.result(20)
        assert (result.status, result.text) == ("dropped", "")
        assert result.error is not None
        assert result.error.type == "TooBusy"
        assert f"thread '{thread}' has 1 queued turns and the limit is 1" in result.error.message
        assert (await lab.chunks(lab.chat.turn(refused.request_id)))[-1].data["type"] == "TooBusy"
        assert not any("late" in message.text for message in await lab.chat.messages(thread))


async def test_a_tenant_at_its_limit_is_refused_while_another_goes_on(
    start_lab: StartLab, scripted_server: ScriptedModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERTURN_MAX_UNFINISHED_PER_TENANT", "2")
    async with start_lab(make_agent(scripted_server)) as lab:
        running = [await lab.play("text tokens=4000 delay_ms=20", tenant_id="acme") for _ in range(2)]
        for turn in running:
            await lab.until(turn, "text-delta")
        with pytest.raises(TooBusy, match="tenant 'acme' has 2 unfinished turns and the limit is 2"):
            await lab.play("ok", tenant_id="acme")
        assert (await (await lab.play("ok", tenant_id="else")).result(10)).text == "ok"
        await running[0].cancel()
        await running[0].result(10)
        assert (await (await lab.play("ok", tenant_id="acme")).result(10)).text == "ok"


async def test_a_crowd_that_comes_at_once_is_taken_up_to_the_limit(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server), max_queued_per_thread=3) as lab:
        thread = await _crowded(lab, 0)
        chat = await lab.storeless()
        crowd = await asyncio.gather(*(chat.submit(thread, f"[[ok]] {n}", agent="agent") for n in range(8)))
        begun = await asyncio.gather(*(lab.chat._temporal.admission(turn.request_id) for turn in crowd))
        outcomes = sorted(answer.outcome if answer is not None else "over" for answer in begun)
        assert outcomes.count("queued") == 3, outcomes
        dropped = await lab.chat.list_turns(thread, "dropped")
        assert {turn.error.type for turn in dropped if turn.error} == {"TooBusy"}
        assert len(dropped) == 5
