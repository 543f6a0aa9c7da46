"""The limits of hooks and turns have the values of the contract; that they hold is tested where the checklist says."""

from __future__ import annotations

from typing import get_args

import pytest

from everturn import Agent, Ask, Hooks
from everturn.activities.models import retry_after
from everturn.hooks import log
from everturn.hooks.session import SessionConfig, Truncation
from everturn.hooks.tools import Tool
from everturn.turns import StopReason, TurnStatus
from everturn.workflows import timeouts
from tests.integration.hooks.authors import add

DEFAULTS = {
    "run_time_30_s": (Hooks().timeout, 30.0),
    "return_128_kb": (Hooks().max_return_bytes, 128 * 1024),
    "log_50_lines": (log.MAX_LINES, 50),
    "log_4_kb": (log.MAX_LINE_BYTES, 4096),
    "log_levels": (set(get_args(log.LogLevel)), {"debug", "info", "warn", "error"}),
    "on_error_continue": (Hooks().on_error, "continue"),
    "max_steps_10": (Agent().max_steps, 10),
    "models_any": (Agent().models, None),
    "approval_7_days": (Ask().timeout, 7 * 86400.0),
    "tool_loop_3": (timeouts.TOOL_LOOP_CAP, 3),
    "tool_retries_0": (isinstance(add, Tool) and add.retries, 0),
    "retry_after_60_s": (retry_after.MAX_RETRY_AFTER, 60.0),
    "overflow_max_retries_1": (SessionConfig().max_retries, 1),
    "overflow_headroom": (SessionConfig().headroom, 0.9),
    "overflow_max_compactions_1": (SessionConfig().max_compactions, 1),
    "overflow_reactive": (SessionConfig().reactive, True),
    "truncation": (SessionConfig().truncation, Truncation(keep_last=4, tool_output=500, text=10_000)),
    "stop_reasons": (
        set(get_args(StopReason)),
        {"end_turn", "max_steps", "stop_when", "blocked", "cancelled", "error", "tool_loop"},
    ),
    "statuses": (
        set(get_args(TurnStatus)),
        {"queued", "running", "waiting", "completed", "error", "aborted", "blocked", "dropped", "superseded"},
    ),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_default_of(name: str) -> None:
    actual, expected = DEFAULTS[name]
    assert actual == expected
