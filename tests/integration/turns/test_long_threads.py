"""A thread of years: its next turn is as small for Temporal as the first one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, insert

from everturn import tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.store.tables import messages, threads
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent
from tests.integration.turns.test_requests import LARGE_BODIES

COUNT, SIZE = 10_000, 500


def seed(store_url: str, thread: str) -> None:
    """Ten thousand messages of 500 characters, user and assistant by turns."""
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
        for position in range(1, COUNT + 1)
    ]
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(insert(threads).values(thread_id=thread, last_position=COUNT, created_at=began))
        connection.execute(insert(messages), rows)
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
        thread = lab.thread()
        seed(lab.store_url, thread)
        turn = await lab.play('tools calls=2 sequential=1 args=\'{"a": 1, "b": 2}\'', thread)
        result = await turn.result(120)
        assert (result.status, result.steps, result.text) == ("completed", 3, "done: 2 results")
        history = await lab.history(turn)
        assert len(history) <= 60
        assert sum(event.ByteSize() for event in history) <= 50_000
        sent = lab.asked(turn)[0].body["messages"]
        assert len(sent) == COUNT + 1
        assert sum(len(str(message["content"])) for message in sent) > 4_900_000
