"""Messages put together from steps and streams."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.store.assembly import parts_of_steps, parts_of_stream, tool_part
from everturn.store.records import SETTLED_CALLS, CallState, StepRecord, ToolCall
from everturn.turns import Usage


def step(*parts: dict[str, Any], calls: list[ToolCall] | None = None) -> StepRecord:
    return StepRecord("r", 0, 1, "m", list(parts), calls or [], "stop", Usage(), 1)


def test_steps_without_content_leave_nothing() -> None:
    assert parts_of_steps([step(), step({"type": "text", "text": ""}), step({"type": "reasoning", "text": ""})]) == []


def test_signed_reasoning_without_text_is_kept() -> None:
    signed = {"type": "reasoning", "text": "", "providerMetadata": {"anthropic": {"redacted": "x"}}}
    assert parts_of_steps([step(signed)]) == [{"type": "step-start"}, {**signed, "state": "done"}]


@pytest.mark.parametrize("state", sorted(SETTLED_CALLS))
def test_every_settled_call_has_an_output_or_an_error_text(state: CallState) -> None:
    part = tool_part(ToolCall("c", "get", 0, 0, None, state=state))
    assert ("output" in part) != ("errorText" in part)
    assert part["input"] == {}
    assert part["state"] == ("output-available" if "output" in part else "output-error")


def test_a_stream_is_cut_into_its_text_blocks() -> None:
    events = [
        ("text-start", {"id": "1"}),
        ("text-delta", {"id": "1", "delta": "a"}),
        ("text-delta", {"id": "2", "delta": "x"}),
        ("text-delta", {"id": "1", "delta": "b"}),
        ("reasoning-delta", {"id": "3", "delta": "hidden"}),
        ("text-start", {"id": "4"}),
    ]
    assert parts_of_stream(events) == [
        {"type": "step-start"},
        {"type": "text", "text": "ab", "state": "done"},
        {"type": "text", "text": "x", "state": "done"},
    ]
    assert parts_of_stream([]) == []
