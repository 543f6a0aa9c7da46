"""An async tool that blocks the event loop: other turns are late, not lost."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from everturn import tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import eventually, make_agent
from tests.integration.turns.test_events import facts

BLOCKED = 8.0
"""Seconds; Temporal gives an activity up after 5 without a heartbeat."""


@tool
async def block(seconds: float) -> str:
    """Blocks the whole worker, as a synchronous client in an async function does."""
    time.sleep(seconds)
    return "blocked"


@tool(timeout=60)
async def linger(seconds: float) -> str:
    """Takes its time, politely."""
    await asyncio.sleep(seconds)
    return "lingered"


async def test_no_step_of_another_turn_is_tried_again_while_a_tool_blocks_the_loop(
    start_lab: StartLab, scripted_server: ScriptedModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[block, linger])) as lab:
        with caplog.at_level(logging.WARNING, "everturn.events"):
            streaming = await lab.play("text tokens=40 delay_ms=50")
            lingering = await lab.play("tools tool=linger args='{\"seconds\": 1.5}'")
            await lab.until(streaming, "text-delta")
            await lab.until(lingering, "tool-input-available")
            await eventually(lambda: _runs(lab.store, lingering.request_id), "the tool runs")
            blocking = await lab.play(f"tools tool=block args='{{\"seconds\": {BLOCKED}}}'")
            results = [await turn.result(60) for turn in (blocking, streaming, lingering)]
        assert [result.status for result in results] == ["completed"] * 3
        for turn in (blocking, streaming, lingering):
            events = await lab.history(turn)
            attempts = [
                event.activity_task_started_event_attributes.attempt
                for event in events
                if event.HasField("activity_task_started_event_attributes")
            ]
            assert attempts
            assert set(attempts) == {1}, attempts
            assert not [e for e in events if e.HasField("activity_task_timed_out_event_attributes")]
            assert (await turn.info()).attempts_failed == 0
        assert len(lab.asked(streaming)) == 1
        longest = max(facts(caplog, "worker:loop:stalled"), key=lambda fact: fact["ms"])
        assert longest["ms"] >= (BLOCKED - 1) * 1000
        assert longest["over"] is True
        assert "block" in longest["stack"][-1]


async def _runs(store: object, request_id: str) -> bool:
    info = await store.inspect(request_id)  # type: ignore[attr-defined]
    return info is not None and any(call.state == "running" for call in info.tool_calls)
