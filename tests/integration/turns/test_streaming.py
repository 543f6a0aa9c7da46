"""Following a turn: resumed from another client, after the end, and when the turn's workflow is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from everturn import BadInput, ChatClient, Chunk, Store, StoreUnavailable, Turn, TurnNotFound
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, eventually, make_agent, shown_text


@asynccontextmanager
async def another_client(lab: Lab, store_url: str | None = None) -> AsyncIterator[ChatClient]:
    """A client with a connection to Temporal and a store of its own, as another process has them."""
    url = store_url or lab.store_url
    target = lab.client.service_client.config.target_host
    async with await ChatClient.connect(target=target, task_queue=lab.task_queue, store=url) as chat:
        yield chat


async def take(turn: Turn, count: int) -> list[Chunk]:
    """The first chunks of a turn; then the reader goes away."""
    seen: list[Chunk] = []
    async for chunk in turn.stream():
        seen.append(chunk)
        if len(seen) == count:
            break
    return seen


async def test_a_stream_resumed_elsewhere_has_no_gap_and_no_double(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab, another_client(lab) as other:
        turn = await lab.play("text tokens=80 delay_ms=15")
        first = await asyncio.wait_for(take(turn, 12), 20)
        rest = [chunk async for chunk in other.turn(turn.request_id).stream(after=first[-1].seq)]
        assert [c.seq for c in first + rest] == list(range(1, len(first + rest) + 1))
        assert rest[-1].type == "finish"
        result = await turn.result(10)
        assert result.status == "completed"
        assert shown_text(first + rest) == result.text == "".join(f"w{n:04d} " for n in range(1, 81))


async def test_many_readers_see_the_same_stream(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server)) as lab, another_client(lab) as other:
        turn = await lab.play("text tokens=40 delay_ms=10")
        readers = [lab.chunks(turn), lab.chunks(turn), lab.chunks(other.turn(turn.request_id))]
        one, two, three = await asyncio.gather(*readers)
        assert one == two == three


async def test_after_the_end_the_whole_stream_and_its_end_are_there(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab, another_client(lab) as other:
        turn = await lab.play("say text='hello again'")
        live = await lab.chunks(turn)
        replayed = await lab.chunks(other.turn(turn.request_id))
        assert replayed == live
        assert await lab.chunks(other.turn(turn.request_id), after=live[-2].seq) == live[-1:]
        assert await lab.chunks(other.turn(turn.request_id), after=live[-1].seq) == []
        assert await other.turn(turn.request_id).result(10) == await turn.result(10)


async def test_a_position_that_cannot_be_is_refused(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("text tokens=40 delay_ms=20")
        await lab.until(turn, "text-delta")
        with pytest.raises(BadInput, match="-1"):
            await lab.chunks(turn, after=-1)
        with pytest.raises(BadInput, match="100000"):
            await lab.chunks(turn, after=100_000)


async def test_a_turn_that_nobody_knows_is_not_waited_for(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        unknown = lab.chat.turn("never-heard-of")
        with pytest.raises(TurnNotFound, match="never-heard-of"):
            await lab.chunks(unknown)
        with pytest.raises(TurnNotFound, match="never-heard-of"):
            await unknown.result(10)
        with pytest.raises(TurnNotFound, match="never-heard-of"):
            await unknown.info()


async def test_a_stream_can_be_opened_before_any_worker_has_begun_the_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server)
    async with start_lab(agent, workers=0) as lab:
        turn = await lab.play("ok")
        reading = asyncio.ensure_future(lab.chunks(turn))
        async with start_lab(agent):
            chunks = await asyncio.wait_for(reading, 20)
        assert (chunks[0].type, chunks[-1].type, shown_text(chunks)) == ("start", "finish", "ok")


async def test_a_terminated_turn_ends_as_lost_and_the_queue_moves_on(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("text tokens=5 delay_ms=10 | stall")
        stalled = await lab.play("stall tokens=3")
        await lab.until(stalled, "text-delta")
        queued = await lab.play("say text='my turn'", stalled.thread_id)
        await lab.until(queued, "data-queued")
        reading = asyncio.ensure_future(lab.chunks(stalled))
        await lab.client.get_workflow_handle(workflow_id(stalled.request_id)).terminate("by the operator")
        result = await stalled.result(20)
        assert (result.status, result.stop_reason) == ("error", "error")
        assert result.error is not None
        assert result.error.type == "lost"
        chunks = await asyncio.wait_for(reading, 10)
        assert (chunks[-1].type, chunks[-1].data["type"]) == ("error", "lost")
        assert (await queued.result(20)).text == "my turn"
        assert (await turn.result(20)).status == "completed"

        async def closed() -> bool:
            return lab.asked(stalled)[0].client_closed

        await eventually(closed, "the model's connection of the terminated turn closes", 15)
        assert (await lab.chunks(stalled))[-1] == chunks[-1]


async def test_a_terminated_turn_that_nobody_follows_is_settled_by_the_turn_behind_it(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        stalled = await lab.play("stall tokens=3")
        await lab.until(stalled, "text-delta")
        queued = await lab.play("say text='my turn'", stalled.thread_id)
        await lab.client.get_workflow_handle(workflow_id(stalled.request_id)).terminate()
        assert (await queued.result(25)).text == "my turn"
        head = await lab.store.head(stalled.request_id)
        assert head is not None
        assert head.status == "error"


async def test_a_turn_terminated_before_any_worker_began_it_ends_as_lost(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server), workers=0) as lab:
        turn = await lab.play("ok")
        await lab.client.get_workflow_handle(workflow_id(turn.request_id)).terminate()
        result, chunks = await asyncio.gather(turn.result(20), lab.chunks(turn))
        assert result.status == "error"
        assert result.error is not None
        assert result.error.type == "lost"
        assert [(c.seq, c.type, c.data["type"]) for c in chunks] == [(1, "error", "lost")]
        assert await lab.chat.cancel_chat(turn.request_id) == "already_terminal"


async def test_a_client_with_another_store_than_the_workers_gets_the_result_and_a_clear_error_for_the_stream(
    start_lab: StartLab, scripted_server: ScriptedModelServer, tmp_path: object
) -> None:
    url = f"sqlite:///{tmp_path}/another.db"
    await (await Store.open(url, create=True)).close()
    async with start_lab(make_agent(scripted_server)) as lab, another_client(lab, url) as other:
        turn = await lab.play("say text='stored elsewhere'")
        await turn.result(10)
        assert (await other.turn(turn.request_id).result(20)).text == "stored elsewhere"
        with pytest.raises(StoreUnavailable, match="store of the workers"):
            await lab.chunks(other.turn(turn.request_id))
