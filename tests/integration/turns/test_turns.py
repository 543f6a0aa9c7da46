"""The main path of a turn, on both kinds of store: answers, tools, order, stop, and what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn import tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, shown_text
from tests.services.postgres import PostgresService, postgres  # noqa: F401 - a fixture


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of a fresh store of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    service: PostgresService = request.getfixturevalue("postgres")
    with service.database() as url:
        yield url


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def test_a_plain_turn_streams_stores_and_returns_one_answer(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.submit(lab.thread(), "[[say text='hello there']]")
        chunks = await lab.chunks(turn)
        result = await turn.result(10)
        assert result.status == "completed"
        assert result.text == "hello there"
        assert [c.seq for c in chunks] == list(range(1, len(chunks) + 1))
        assert chunks[0].type == "start"
        assert chunks[-1].type == "finish"
        assert "".join(c.data["delta"] for c in chunks if c.type == "text-delta") == "hello there"
        messages = await lab.chat.messages(turn.thread_id)
        assert [(m.role, m.text) for m in messages] == [
            ("user", "[[say text='hello there']]"),
            ("assistant", "hello there"),
        ]


async def test_two_sequential_tool_calls_make_three_steps_and_a_short_history(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[add])) as lab:
        turn = await lab.submit(lab.thread(), '[[tools calls=2 sequential=1 args=\'{"a": 1, "b": 2}\']]')
        result = await turn.result(20)
        assert (result.status, result.steps) == ("completed", 3)
        info = await turn.info()
        assert [call.output for call in info.tool_calls] == [3, 3]
        history = await lab.history(turn)
        assert len(history) <= 60
        assert sum(event.ByteSize() for event in history) <= 12_000


async def test_messages_sent_while_a_turn_runs_are_answered_one_by_one_in_order(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        turns = [await lab.submit(thread, f"[[say text=answer{i} delay_ms=30]]") for i in range(4)]
        await asyncio.gather(*(turn.result(30) for turn in turns))
        texts = [message.text for message in await lab.chat.messages(thread)]
        assert texts == [t for i in range(4) for t in (f"[[say text=answer{i} delay_ms=30]]", f"answer{i}")]
        last = lab.requests("say text=answer3")[-1].body["messages"]
        assert [m["content"] for m in last if m["role"] == "assistant"] == ["answer0", "answer1", "answer2"]


async def test_the_same_request_sent_fifty_times_at_once_runs_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread, request_id = lab.thread(), lab.thread()
        text = f"[[say text='once only {request_id}']]"
        turns = await asyncio.gather(*(lab.submit(thread, text, request_id=request_id) for _ in range(50)))
        assert [turn.accepted for turn in turns].count(True) == 1
        results = await asyncio.gather(*(turn.result(20) for turn in turns))
        assert {result.text for result in results} == {f"once only {request_id}"}
        again = await lab.submit(thread, text, request_id=request_id)
        assert not again.accepted
        assert (await again.result(10)).text == f"once only {request_id}"
        assert len(lab.requests(request_id)) == 1
        assert len(await lab.chat.messages(thread)) == 2


async def test_a_stop_keeps_what_was_said_and_the_next_turn_works(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("text tokens=500 delay_ms=20")
        await lab.until(turn, "text-delta")
        assert await lab.chat.cancel_chat(turn.request_id) == "cancelled"
        result = await turn.result(10)
        assert (result.status, result.text[:5]) == ("aborted", "w0001")
        assert (await (await lab.play("ok", turn.thread_id)).result(10)).text == "ok"


async def test_a_failed_attempt_is_void_and_the_next_one_counts(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("cut how=reset times=1 then=ok")
        assert shown_text(await lab.chunks(turn)) == "ok"
        assert (await turn.result(10)).text == "ok"
        assert (await turn.info()).attempts_failed == 1
