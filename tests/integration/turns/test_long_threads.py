"""A thread of years: its next turn is as small for Temporal as the first one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, insert, update

from everturn import tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.store.tables import messages, threads
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent
from tests.integration.turns.test_requests import LARGE_BODIES

COUNT, SIZE = 10_000, 500


def lengthen(store_url: str, thread: str, first: int) -> None:
    """Adds ten thousand messages of 500 characters, user and assistant by turns, from position `first` on."""
    began = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        {
            "message_id": f"{thread}-{position}",
            "thread_id": thread,
            "position": position,
            "role": "user" if position % 2 else "assistant",
            "parts": [{"type": "text", "text": f"message {position} ".ljust(SIZE, "m")}],
            "hidden": False,
            "created_at": began + timedelta(minutes=position),
        }
        for position in range(first, first + COUNT)
    ]
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(insert(messages), rows)
        last = {"last_position": first + COUNT - 1}
        connection.execute(update(threads).where(threads.c.thread_id == thread).values(**last))
    engine.dispose()


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@LARGE_BODIES
@pytest.mark.timeout(180)
async def test_a_turn_of_a_thread_of_ten_thousand_messages_has_a_short_history(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[add])) as lab:
        begun = await lab.play("ok")
        await begun.result(20)
        lengthen(lab.store_url, begun.thread_id, first=3)
        turn = await lab.play('tools calls=2 sequential=1 args=\'{"a": 1, "b": 2}\'', begun.thread_id)
        result = await turn.result(120)
        assert (result.status, result.steps, result.text) == ("completed", 3, "done: 2 results")
        history = await lab.history(turn)
        assert len(history) <= 60
        assert sum(event.ByteSize() for event in history) <= 50_000
        sent = lab.asked(turn)[1].body["messages"]
        assert len(sent) == 2 + COUNT + 1
        assert sum(len(str(message["content"])) for message in sent) > 4_900_000
