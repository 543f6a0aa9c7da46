"""Structured events that an operator's log collector can rely on."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent


def facts(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    return [record.facts for record in caplog.records if getattr(record, "event", None) == event]  # type: ignore[attr-defined]


async def test_a_failed_turn_tells_its_stage_and_classification(
    start_lab: StartLab, scripted_server: ScriptedModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        with caplog.at_level(logging.WARNING, "everturn.events"):
            turn = await lab.submit(lab.thread(), "[[status code=401]]")
            await turn.result(20)
    (told,) = facts(caplog, "chat:request:failed")
    assert told == {
        "request_id": turn.request_id,
        "thread_id": turn.thread_id,
        "stage": "stream",
        "messages_persisted": True,
        "classification": "fatal",
        "error": "authentication",
    }


async def test_a_stalled_stream_tells_which_attempt_stalled(
    start_lab: StartLab, scripted_server: ScriptedModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    agent = make_agent(scripted_server, chat_stream_stall_timeout=0.3)
    async with start_lab(agent) as lab:
        with caplog.at_level(logging.WARNING, "everturn.events"):
            turn = await lab.submit(lab.thread(), "[[stall tokens=2 kind=silence times=1 then=ok]]")
            result = await turn.result(20)
    assert result.text == "ok"
    assert facts(caplog, "chat:stream:stalled") == [{"request_id": turn.request_id, "step": 0, "attempt": 1}]
