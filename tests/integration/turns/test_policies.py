"""What becomes of messages that meet a busy thread: drop, latest, merge, debounce."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from everturn import Agent, Block, ChatClient, Debounce, Turn
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import new_request_id
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, Lab, eventually, make_agent, running_lab
from tests.services.temporal import TemporalService

LONG = "[[text tokens=5000 delay_ms=20]] the long one"


async def running(lab: Lab, thread: str) -> Turn:
    """A turn that has its thread and talks until it is stopped."""
    turn = await lab.submit(thread, LONG)
    await lab.until(turn, "text-delta")
    return turn


async def stopped(turn: Turn) -> None:
    assert await turn.cancel() == "cancelled"
    assert (await turn.result(10)).status == "aborted"


async def queued(lab: Lab, thread: str, text: str, **options: Any) -> Turn:
    """A turn that has its place in the queue."""
    turn = await lab.submit(thread, text, **options)
    await lab.until(turn, "data-queued")
    return turn


async def known(lab: Lab, turn: Turn) -> None:
    """Waits until a worker has recorded the turn."""

    async def begun() -> bool:
        return await lab.store.head(turn.request_id) is not None

    await eventually(begun, "a worker has recorded the turn")


async def said(lab: Lab, thread: str) -> list[str]:
    """The transcript, the markers of scenarios left out, answers of running words cut."""
    return [m.text.split("]] ")[-1][:20] for m in await lab.chat.messages(thread)]


async def outcome(lab: Lab, turn: Turn) -> dict[str, Any]:
    """What the Web UI shows as the workflow's result; raises for a workflow that failed."""
    async with asyncio.timeout(WAIT):
        found: dict[str, Any] = await lab.client.get_workflow_handle(turn.workflow_id).result()
    return found


class Watching(Agent):
    """Notes how turns end and what starts them."""

    ends: dict[str, str]

    def on_turn_end(self, result: Any) -> None:
        self.ends[result.request_id] = result.status


async def test_policy_drop_ends_the_turn_of_a_busy_thread_at_once_and_stores_no_message(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    ends: dict[str, str] = {}
    async with start_lab(make_agent(scripted_server, base=Watching, ends=ends)) as lab:
        thread = lab.thread()
        first = await running(lab, thread)
        request_id = new_request_id()
        dropped = await lab.submit(thread, "[[ok]] unwanted", policy="drop", request_id=request_id)
        result = await dropped.result(10)
        assert (result.status, result.stop_reason, result.error, result.text) == ("dropped", None, None, "")
        (end,) = await lab.chunks(dropped)
        assert (end.type, end.data["status"]) == ("abort", "dropped")
        assert first.request_id in end.data["reason"]
        assert (await outcome(lab, dropped))["status"] == "dropped"
        assert await dropped.cancel() == "already_terminal"
        again = await lab.submit(thread, "[[ok]] unwanted", policy="drop", request_id=request_id)
        assert (again.accepted, await again.result(10)) == (False, result)
        await stopped(first)
        assert [t.status for t in await lab.chat.list_turns(thread)] == ["dropped", "aborted"]
        assert (await said(lab, thread))[0::2] == ["the long one"]
        free = await lab.submit(thread, "[[ok]] taken", policy="drop")
        assert (await free.result(10)).text == "ok"

        async def all_ended() -> bool:
            return len(ends) == 3

        await eventually(all_ended, f"on_turn_end of three turns: {ends}")
        assert ends[dropped.request_id] == "dropped"


async def test_policy_latest_supersedes_what_waits_and_stops_what_runs(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    ends: dict[str, str] = {}
    async with start_lab(make_agent(scripted_server, base=Watching, ends=ends)) as lab:
        thread = lab.thread()
        first = await running(lab, thread)
        waiting = [await queued(lab, thread, f"[[ok]] waits {n}") for n in range(2)]
        latest = await lab.submit(thread, "[[say text=newest]] the newest", policy="latest")
        assert (await latest.result(15)).text == "newest"
        cut = await first.result(10)
        assert (cut.status, cut.stop_reason) == ("aborted", "cancelled")
        assert cut.text.startswith("w0001")
        for turn in waiting:
            result = await turn.result(10)
            assert (result.status, result.message, result.request_id) == ("superseded", None, turn.request_id)
            end = (await lab.chunks(turn))[-1]
            assert (end.type, end.data["supersededBy"], end.data["joined"]) == ("abort", latest.request_id, False)
            assert (await outcome(lab, turn))["superseded_by"] == latest.request_id
            assert await turn.cancel() == "already_terminal"
            info = await turn.info()
            assert (info.turn.status, info.turn.superseded_by) == ("superseded", latest.request_id)
            assert not info.turn.joined
        assert await said(lab, thread) == ["the long one", cut.text[:20], "the newest", "newest"]
        assert not lab.requests("waits 0")

        async def all_ended() -> bool:
            return len(ends) == 4

        await eventually(all_ended, f"on_turn_end of four turns: {ends}")
        assert sorted(ends.values()) == ["aborted", "completed", "superseded", "superseded"]


@asynccontextmanager
async def two_of_everything(
    start_lab: StartLab, server: ScriptedModelServer, temporal: TemporalService
) -> AsyncIterator[tuple[Lab, list[ChatClient]]]:
    """Two workers and two clients on one store, each with a connection of its own."""
    agent = make_agent(server)
    async with (
        start_lab(agent) as lab,
        running_lab(await temporal.connect(), server, lab.task_queue, lab.store_url, [agent]) as other,
    ):
        yield lab, [lab.chat, other.chat]


async def test_of_latest_messages_from_everywhere_at_once_only_the_last_is_answered(
    start_lab: StartLab, scripted_server: ScriptedModelServer, temporal: TemporalService
) -> None:
    async with two_of_everything(start_lab, scripted_server, temporal) as (lab, clients):
        thread = lab.thread()
        turns = await asyncio.gather(
            *(clients[n % 2].submit(thread, f"{LONG} {n}", agent="agent", policy="latest") for n in range(12))
        )

        async def one_left() -> bool:
            listed = await lab.chat.list_turns(thread)
            return len(listed) == 12 and [turn.status for turn in listed if turn.ended_at is None] == ["running"]

        await eventually(one_left, "eleven of twelve turns are over")
        newest, *earlier = await lab.chat.list_turns(thread)
        assert newest.status == "running"
        assert {turn.status for turn in earlier} <= {"aborted", "superseded"}
        started = [turn.request_id for turn in [newest, *earlier] if turn.status != "superseded"]
        users = [m.request_id for m in await lab.chat.messages(thread) if m.role == "user"]
        assert users == started[::-1]
        assert {turn.request_id for turn in turns} == {turn.request_id for turn in [newest, *earlier]}
        await stopped(lab.chat.turn(newest.request_id))


async def test_policy_merge_answers_all_messages_that_wait_in_one_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    ends: dict[str, str] = {}
    async with start_lab(make_agent(scripted_server, base=Watching, ends=ends)) as lab:
        thread = lab.thread()
        first = await running(lab, thread)
        own = [f"[[say text='to all']] part {n}" for n in range(3)]
        turns = [
            await queued(lab, thread, own[n], policy="queue" if n == 0 else "merge", metadata={"n": n})
            for n in range(3)
        ]
        await stopped(first)
        results = [await turn.result(20) for turn in turns]
        assert results[0].text == "to all"
        assert results[0].request_id == turns[0].request_id
        assert results[1:] == [results[0]] * 2
        assert (await said(lab, thread))[2:] == ["part 0", "part 1", "part 2", "to all"]
        messages = (await lab.chat.messages(thread))[2:5]
        assert [(m.request_id, m.metadata) for m in messages] == [(t.request_id, {"n": n}) for n, t in enumerate(turns)]
        (asked,) = lab.requests("part 2")
        assert [m["content"] for m in asked.body["messages"] if m["role"] == "user"][1:] == own
        for turn in turns[1:]:
            info = (await turn.info()).turn
            assert (info.status, info.superseded_by, info.joined) == ("superseded", turns[0].request_id, True)
            assert (await outcome(lab, turn))["status"] == "superseded"
            assert await turn.cancel() == "already_terminal"
            assert (await (await lab.storeless()).result(turn.request_id, timeout=10)).text == "to all"
        assert sorted(ends.values()) == ["aborted", "completed", "superseded", "superseded"]


async def test_the_stream_of_a_message_that_joined_goes_on_as_that_of_the_turn_that_answers_it(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        first = await running(lab, thread)
        answering = await queued(lab, thread, "[[text tokens=5]] a")
        joining = await queued(lab, thread, "b", policy="merge")
        following = asyncio.ensure_future(lab.chunks(joining))
        await stopped(first)
        live, own = await following, await lab.chunks(answering)
        assert [c.seq for c in live] == list(range(1, len(live) + 1))
        mark = [c.type for c in live].index("data-joined")
        assert live[mark].data == {"requestId": answering.request_id}
        assert [(c.type, c.data) for c in live[mark + 1 :]] == [(c.type, c.data) for c in own]
        assert [c.is_end for c in live] == [False] * (len(live) - 1) + [True]
        for after in range(len(live) + 1):  # resumed anywhere, there is no gap and no double
            assert await lab.chunks(joining, after) == live[after:]


async def test_a_merged_message_that_is_withdrawn_before_its_turn_is_left_out(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        first = await running(lab, thread)
        turns = [await queued(lab, thread, f"[[say text=answer]] part {n}", policy="merge") for n in range(4)]
        assert await turns[2].cancel() == "cancelled"
        assert await turns[0].cancel() == "cancelled"
        await stopped(first)
        results = [await turn.result(20) for turn in turns]
        assert [result.status for result in results] == ["aborted", "completed", "aborted", "completed"]
        assert results[1] == results[3]
        assert (await said(lab, thread))[2:] == ["part 1", "part 3", "answer"]


async def test_messages_of_another_user_or_agent_are_never_merged(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agents = [make_agent(scripted_server, name=name) for name in ("agent", "other")]
    async with start_lab(*agents) as lab:
        thread = lab.thread()
        first = await running(lab, thread)
        options: list[dict[str, Any]] = [{}, {"tenant_id": "acme"}, {"agent": "other"}, {}, {}]
        turns = [
            await queued(lab, thread, f"[[say text=answer{n}]] part {n}", policy="merge", **given)
            for n, given in enumerate(options)
        ]
        await stopped(first)
        results = [await turn.result(20) for turn in turns]
        assert [r.request_id for r in results] == [t.request_id for t in turns[:4]] + [turns[3].request_id]
        assert (await said(lab, thread))[2:8] == ["part 0", "answer0", "part 1", "answer1", "part 2", "answer2"]
        assert (await said(lab, thread))[8:10] == ["part 3", "part 4"]


async def test_a_refused_turn_hides_the_messages_that_joined_it_too(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    class Doorkeeper(Agent):
        async def before_turn(self, ctx: Any) -> Block | None:
            return Block("no") if "refuse" in str(ctx.messages[-1]) else None

    async with start_lab(make_agent(scripted_server, base=Doorkeeper)) as lab:
        thread = lab.thread()
        first = await running(lab, thread)
        turns = [await queued(lab, thread, f"{word} {thread}", policy="merge") for word in ("innocent", "refuse")]
        await stopped(first)
        assert {(await turn.result(20)).status for turn in turns} == {"blocked"}
        hidden = [m.hidden for m in await lab.chat.messages(thread)]
        assert hidden == [False, False, True, True, True]


async def test_policy_debounce_waits_for_further_messages_and_answers_all_at_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        texts = [f"[[say text=together]] part {n}" for n in range(3)]
        turns = [await lab.submit(thread, text, policy=Debounce(1)) for text in texts]
        await known(lab, turns[0])
        assert (await turns[0].info()).turn.status == "queued"
        results = [await turn.result(20) for turn in turns]
        assert results[0].text == "together"
        assert results == [results[0]] * 3
        assert await said(lab, thread) == ["part 0", "part 1", "part 2", "together"]
        listed = {t.request_id: t for t in await lab.chat.list_turns(thread)}
        assert [listed[t.request_id].joined for t in turns] == [False, True, True]
        last, started = listed[turns[2].request_id].submitted_at, listed[turns[0].request_id].started_at
        assert started is not None
        assert (datetime.fromisoformat(started) - datetime.fromisoformat(last)).total_seconds() > 0.9


async def test_a_debounced_turn_can_be_stopped_while_it_waits_and_the_next_message_waits_on(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        first = await lab.submit(thread, "[[say text=never]] first", policy="debounce:60")
        await known(lab, first)
        second = await lab.submit(thread, "[[say text=answer]] second", policy="debounce:1")
        await lab.until(second, "data-queued")
        await stopped(first)
        assert (await second.result(20)).text == "answer"
        assert await said(lab, thread) == ["second", "answer"]


async def test_a_debounced_turn_outlives_its_worker(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    agent = make_agent(scripted_server)
    async with start_lab(agent) as lab:
        thread = lab.thread()
        turns = [await lab.submit(thread, f"[[say text=answer]] part {n}", policy=Debounce(1)) for n in range(2)]
        for turn in turns:
            await known(lab, turn)
        await lab.workers[0].shutdown()
        async with start_lab(agent):
            results = [await turn.result(WAIT) for turn in turns]
        assert [result.text for result in results] == ["answer"] * 2
        assert await said(lab, thread) == ["part 0", "part 1", "answer"]


async def test_a_request_that_is_sent_fifty_times_at_once_is_one_turn_whatever_its_policy(
    start_lab: StartLab, scripted_server: ScriptedModelServer, temporal: TemporalService
) -> None:
    async with two_of_everything(start_lab, scripted_server, temporal) as (lab, clients):
        for policy in ("drop", "latest", "merge", "debounce:0.3"):
            thread, request_id = lab.thread(), new_request_id()
            given = {"agent": "agent", "policy": policy, "request_id": request_id}
            text = f"[[say text=once]] {thread}"
            turns = await asyncio.gather(*(clients[n % 2].submit(thread, text, **given) for n in range(50)))
            assert [turn.accepted for turn in turns].count(True) == 1, policy
            results = await asyncio.gather(*(turn.result(WAIT) for turn in turns))
            assert {(result.request_id, result.text) for result in results} == {(request_id, "once")}, policy
            assert not (await lab.chat.submit(thread, text, **given)).accepted
            assert len(lab.requests(thread)) == 1, policy
            assert len(await lab.chat.messages(thread)) == 2


@pytest.mark.parametrize("policy", ["queue", "merge", "debounce:0.3"])
async def test_messages_from_everywhere_at_once_are_each_answered_once_in_one_order(
    start_lab: StartLab, scripted_server: ScriptedModelServer, temporal: TemporalService, policy: str
) -> None:
    async with two_of_everything(start_lab, scripted_server, temporal) as (lab, clients):
        thread = lab.thread()
        texts = [f"[[say text=answer]] number {n:02}" for n in range(12)]
        turns = await asyncio.gather(
            *(clients[n % 2].submit(thread, text, agent="agent", policy=policy) for n, text in enumerate(texts))
        )
        results = await asyncio.gather(*(turn.result(WAIT) for turn in turns))
        assert {result.status for result in results} == {"completed"}
        messages = await lab.chat.messages(thread)
        assert sorted(m.text for m in messages if m.role == "user") == texts
        answered_by = {turn.request_id: result.request_id for turn, result in zip(turns, results, strict=True)}
        before = [answered_by[m.request_id or ""] for m in messages if m.role == "user"]
        answers = [m.request_id for m in messages if m.role == "assistant"]
        assert list(dict.fromkeys(before)) == answers, "messages stand right before their answer"
        assert (len(answers) < len(texts)) == (policy != "queue")
