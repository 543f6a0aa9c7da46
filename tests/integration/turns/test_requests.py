"""What can be asked for: repeated requests, full threads, sizes, wrong values, clients without a store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio.client import Client

from everturn import (
    BadInput,
    ChatClient,
    MessageTooLarge,
    RequestConflict,
    ResultTimeout,
    Store,
    StoreRequired,
    TemporalUnavailable,
    ThreadBusy,
    tool,
)
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, running_lab

LARGE_BODIES = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
"""litellm hands its requests to aiohttp in one piece, and aiohttp warns when that is more than 1 MB."""


@asynccontextmanager
async def forgetful_temporal() -> AsyncIterator[Client]:
    """A Temporal that knows nothing of earlier turns, as after its retention."""
    async with EmbeddedServer(ServerOptions(state_file=None)) as server:
        yield await Client.connect(server.address)


async def test_a_request_id_with_another_body_is_a_conflict_while_the_turn_runs_and_afterwards(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread, request_id = lab.thread(), lab.thread()
        text = "[[text tokens=10 delay_ms=20]]"
        turn = await lab.submit(thread, text, request_id=request_id)
        others: list[dict[str, Any]] = [
            {"text": "another text"},
            {"thread": lab.thread()},
            {"body": {"changed": True}},
            {"metadata": {"changed": True}},
            {"tenant_id": "another"},
        ]
        for client in (lab.chat, await lab.storeless()):
            for other in others:
                given = {"thread": thread, "text": text, **other}
                rest = {k: v for k, v in given.items() if k not in ("thread", "text")}
                with pytest.raises(RequestConflict, match=request_id):
                    await client.submit(given["thread"], given["text"], agent="agent", request_id=request_id, **rest)
        result = await turn.result(20)
        assert result.status == "completed"
        with pytest.raises(RequestConflict, match=request_id):
            await lab.submit(thread, "another text", request_id=request_id)
        assert await turn.result(5) == result
        assert len(lab.requests("text tokens=10 delay_ms=20")) == 1


async def test_the_store_remembers_a_request_that_temporal_has_forgotten(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server)
    async with start_lab(agent) as lab:
        thread, request_id = lab.thread(), lab.thread()
        text = f"[[say text=once]] {thread}"
        result = await (await lab.submit(thread, text, request_id=request_id)).result(10)
    async with (
        forgetful_temporal() as temporal,
        running_lab(temporal, scripted_server, lab.task_queue, lab.store_url, [agent]) as later,
    ):
        again = await later.submit(thread, text, request_id=request_id)
        assert not again.accepted
        assert await again.result(10) == result
        with pytest.raises(RequestConflict, match=request_id):
            await later.submit(thread, "something else", request_id=request_id)
        # A client without a store cannot know; the turns that it starts find the stored one and touch nothing.
        blind = await later.storeless()
        repeated = await blind.submit(thread, text, agent="agent", request_id=request_id)
        assert (await repeated.result(20)).text == "once"
        assert await again.result(10) == result
        assert len(later.requests(thread)) == 1
        assert len(await later.chat.messages(thread)) == 2


async def test_a_conflict_that_only_the_worker_can_see_leaves_the_first_turn_alone(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server)
    async with start_lab(agent) as lab:
        thread, request_id = lab.thread(), lab.thread()
        result = await (await lab.submit(thread, "[[say text=first]]", request_id=request_id)).result(10)
    async with (
        forgetful_temporal() as temporal,
        running_lab(temporal, scripted_server, lab.task_queue, lab.store_url, [agent]) as later,
    ):
        blind = await later.storeless()
        refused = await (await blind.submit(thread, "second", agent="agent", request_id=request_id)).result(20)
        assert refused.error is not None
        assert refused.error.type == "RequestConflict"
        assert await later.chat.turn(request_id).result(10) == result
        assert len(await later.chat.messages(thread)) == 2


async def test_a_large_message_of_a_conflicting_request_does_not_replace_the_accepted_one(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server)
    async with start_lab(agent, workers=0) as lab:
        thread, request_id = lab.thread(), lab.thread()
        accepted = "[[ok]] accepted " + "x" * 300_000
        turn = await lab.submit(thread, accepted, request_id=request_id)
        with pytest.raises(RequestConflict):
            await lab.submit(thread, "[[ok]] refused " + "y" * 300_000, request_id=request_id)
        async with start_lab(agent):
            assert (await turn.result(20)).text == "ok"
        assert (await lab.chat.messages(thread))[0].text == accepted


@pytest.mark.parametrize("with_store", [True, False])
async def test_policy_reject_refuses_a_busy_thread_and_takes_a_free_one(
    start_lab: StartLab, scripted_server: ScriptedModelServer, with_store: bool
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        chat = lab.chat if with_store else await lab.storeless()
        running = await lab.play("text tokens=400 delay_ms=20")
        await lab.until(running, "text-delta")
        for _ in range(5):
            with pytest.raises(ThreadBusy, match=running.thread_id):
                await chat.submit(running.thread_id, "[[say text=refused]]", agent="agent", policy="reject")
        await running.cancel()
        await running.result(10)
        free = await chat.submit(running.thread_id, "[[say text=taken]]", agent="agent", policy="reject")
        assert (await free.result(10)).text == "taken"
        texts = [m.text for m in await lab.chat.messages(running.thread_id)]
        assert not any("refused" in text for text in texts)
        assert len(texts) == 4


@LARGE_BODIES
async def test_a_message_of_up_to_eight_megabytes_goes_by_way_of_the_store(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        text = "[[say text=read]] " + "ü" * 3_000_000
        turn = await lab.submit(thread, text)
        assert (await turn.result(30)).text == "read"
        assert (await lab.chat.messages(thread))[0].text == text
        assert sum(event.ByteSize() for event in await lab.history(turn)) < 50_000
        assert lab.requests(thread) == []  # the thread's name is never sent to the model
        with pytest.raises(MessageTooLarge, match="limit"):
            await lab.submit(thread, "x" * (8 * 1024 * 1024 + 1))
        with pytest.raises(MessageTooLarge, match="without a store"):
            await (await lab.storeless()).submit(thread, "x" * 300_000, agent="agent")
        assert len(await lab.chat.list_turns(thread)) == 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"thread_id": ""}, "thread_id"),
    ({"thread_id": 7}, "thread_id"),
    ({"thread_id": "x" * 201}, "thread_id"),
    ({"thread_id": "a\nb"}, "thread_id"),
    ({"request_id": ""}, "request_id"),
    ({"request_id": " blank"}, "request_id"),
    ({"request_id": "nul\x00"}, "request_id"),
    ({"agent": ""}, "agent"),
    ({"tenant_id": ""}, "tenant_id"),
    ({"policy": "whatever"}, "policy"),
    ({"message": ""}, "empty"),
    ({"message": "  \n "}, "empty"),
    ({"message": []}, "message"),
    ({"message": 5}, "message"),
    ({"message": None}, "message"),
    ({"message": [{"type": "text"}]}, "part 0"),
    ({"message": [{"type": "text", "text": "a"}, {"type": "tool-x"}]}, "part 1"),
    ({"message": ["text"]}, "part 0"),
    ({"message": [{"type": "file"}]}, "part 0"),
    ({"message": {"role": "assistant", "parts": [{"type": "text", "text": "a"}]}}, "role"),
    ({"message": "a \x00 in it"}, "U\\+0000"),
    ({"message": "lone \ud800"}, "Unicode"),
    ({"body": {"a": object()}}, "body"),
    ({"body": {"a": float("nan")}}, "body"),
    ({"body": [1]}, "body"),
    ({"body": {"a": "x" * 300_000}}, "body"),
    ({"metadata": {"a": {1, 2}}}, "metadata"),
    ({"principal": {"id": "u1"}}, "principal"),
]


async def test_values_that_cannot_be_used_are_named_and_nothing_is_started(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server), workers=0) as lab:
        for number, (change, named) in enumerate(BAD):
            given: dict[str, Any] = {
                "thread_id": "thread",
                "message": "hello",
                "agent": "agent",
                "request_id": f"{lab.task_queue}-{number}",
                **change,
            }
            with pytest.raises(BadInput, match=named) as caught:
                await lab.chat.submit(given.pop("thread_id"), given.pop("message"), **given)
            assert len(str(caught.value)) < 400, str(caught.value)
            if "request_id" not in change:
                assert await lab.chat.cancel_chat(given["request_id"]) == "not_found"
        assert 'INSERT INTO "turns"' not in lab.stored_text()
        assert 'INSERT INTO "drafts"' not in lab.stored_text()


async def test_a_text_that_spells_an_escape_out_is_fine(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        text = r"[[ok]] what does \u0000 mean in C:\new\table?"
        turn = await lab.submit(lab.thread(), text)
        assert (await turn.result(10)).text == "ok"
        assert (await lab.chat.messages(turn.thread_id))[0].text == text


async def test_a_client_without_a_store_submits_waits_and_cancels(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        chat = await lab.storeless()
        turn = await chat.submit(lab.thread(), "[[say text='by Temporal alone']]", agent="agent")
        result = await turn.result(20)
        assert (result.status, result.stop_reason, result.text) == ("completed", "end_turn", "by Temporal alone")
        assert (result.steps, result.thread_id, result.usage.output_tokens > 0) == (1, turn.thread_id, True)
        failed = await (await chat.submit(lab.thread(), "[[status code=400]]", agent="agent")).result(20)
        assert failed.error is not None
        assert (failed.status, failed.error.type, failed.thread_id != "") == ("error", "bad_request", True)
        long = await chat.submit(lab.thread(), "[[text tokens=2000 delay_ms=20]]", agent="agent")
        with pytest.raises(ResultTimeout, match=long.request_id):
            await long.result(1)
        assert await long.cancel() == "cancelled"
        assert (await long.result(10)).status == "aborted"
        for reading in (chat.messages("t"), chat.list_turns(), long.info(), lab.chunks(chat.turn(long.request_id))):
            with pytest.raises(StoreRequired, match="store"):
                await reading


async def test_an_unknown_agent_fails_the_turn_and_frees_the_thread(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("ok", agent="nobody")
        result = await turn.result(10)
        assert (result.status, result.stop_reason) == ("error", "error")
        assert result.error is not None
        assert result.error.type == "UnknownAgent"
        assert "'nobody'" in result.error.message
        assert "registered: agent" in result.error.message
        assert (await lab.chunks(turn))[-1].data["type"] == "UnknownAgent"
        assert (await (await lab.play("ok", turn.thread_id)).result(10)).text == "ok"


async def test_a_worker_without_the_draft_fails_the_turn_and_no_one_waits_for_ever(
    start_lab: StartLab, scripted_server: ScriptedModelServer, tmp_path: object
) -> None:
    url = f"sqlite:///{tmp_path}/another.db"
    store = await Store.open(url, create=True)
    async with start_lab(make_agent(scripted_server)) as lab:
        chat = await ChatClient.connect(lab.client, task_queue=lab.task_queue, store=store)
        async with asyncio.timeout(20):
            turn = await chat.submit(lab.thread(), "x" * 300_000, agent="agent", policy="reject")
        result = await turn.result(20)
        assert result.error is not None
        assert "same store" in result.error.message
    await store.close()


@tool
async def recall(note: str) -> str:
    """Repeats a note."""
    raise ValueError(f"cannot recall {note}")


@pytest.mark.parametrize("previews", [True, False])
async def test_without_previews_no_word_of_the_conversation_is_in_the_history(
    start_lab: StartLab, scripted_server: ScriptedModelServer, previews: bool
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[recall]), history_previews=previews) as lab:
        said = '[[tools args=\'{"note": "blueberry"}\' say=raspberry | say text=strawberry]] gooseberry'
        turn = await lab.submit(lab.thread(), said)
        result = await turn.result(20)
        assert (result.status, result.text) == ("completed", "raspberrystrawberry")
        described = await lab.client.get_workflow_handle(workflow_id(turn.request_id)).describe()
        raw = (
            await lab.raw_history(turn) + str(await described.static_summary()) + str(await described.static_details())
        )
        found = [word for word in ("blueberry", "raspberry", "strawberry", "gooseberry") if word in raw]
        assert found == (["blueberry", "raspberry", "strawberry", "gooseberry"] if previews else [])
        assert (await lab.chat.messages(turn.thread_id))[0].text == said


async def test_an_unreachable_temporal_is_one_clear_error_within_ten_seconds() -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(swallow, "127.0.0.1", 0)
    async with silent:
        port = silent.sockets[0].getsockname()[1]
        for target in ("127.0.0.1:1", f"127.0.0.1:{port}", "no-such-host.invalid:7233"):
            started = time.monotonic()
            with pytest.raises(TemporalUnavailable, match=target):
                await ChatClient.connect(target=target)
            assert time.monotonic() - started < 10


async def test_a_wrong_namespace_is_named(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server), workers=0) as lab:
        target = lab.client.service_client.config.target_host
        with pytest.raises(BadInput, match="no-such-namespace"):
            await ChatClient.connect(target=target, namespace="no-such-namespace")
