"""What `everturn inspect` tells of a turn's hooks."""

from __future__ import annotations

from everturn.turns import HookTraceInfo, TurnInfo, TurnSummary, Usage
from everturn.worker.cli.hook_tables import hook_line, hooks_text
from everturn.worker.cli.tables import turn_text

SUMMARY = TurnSummary(
    "r1", "t1", "support", "completed", "end_turn", "2026-01-01T00:00:00Z", None, None, Usage(), 1, None
)
LOGGED = HookTraceInfo(
    point="before_turn",
    hook="Grounding",
    step=None,
    outcome="ok",
    message=None,
    duration_ms=12,
    logs=[
        {"tag": "hook:before_turn:Grounding", "level": "info", "message": "two\ntexts", "data": {"found": 2}},
        {"tag": "hook:before_turn:Grounding", "level": "warn", "message": "old", "dropped": 7},
    ],
    changed=["messages", "system"],
)
FAILED = HookTraceInfo("before_tool_call", "Guard", 0, "error", "ValueError: no\nrule", 3, [], [], "call_1")


def info(*traces: HookTraceInfo, error: str | None = None) -> TurnInfo:
    return TurnInfo(SUMMARY, [], [], list(traces), error, 0)


def test_each_run_is_one_line_with_outcome_time_changes_and_the_number_of_log_lines() -> None:
    assert hook_line(LOGGED) == ("hook before_turn of Grounding: ok, 12 ms, changed messages, system, 2 log lines")
    assert hook_line(FAILED) == "hook before_tool_call of Guard: error, 3 ms: ValueError: no rule"
    assert turn_text(info(LOGGED, FAILED)).splitlines()[-2:] == [hook_line(LOGGED), hook_line(FAILED)]


def test_the_full_view_has_place_changes_messages_and_every_log_line() -> None:
    assert hooks_text(info(LOGGED, FAILED, error="before_turn of hook 'Other' failed")).splitlines() == [
        "turn r1 of agent support: completed",
        "before_turn hook error: before_turn of hook 'Other' failed",
        "",
        "before_turn · Grounding",
        "  ok, 12 ms",
        "  changed messages, system",
        "  [info] two texts  found=2",
        "  [warn] old  (and 7 more lines that were not kept)",
        "",
        "before_tool_call · Guard · step 0 · call call_1",
        "  error, 3 ms",
        "  ValueError: no rule",
    ]


def test_a_turn_without_hooks_says_so() -> None:
    assert hooks_text(info()).splitlines()[-1] == "no hook ran"
