"""Which tools a worker counts as quick."""

from __future__ import annotations

from dataclasses import replace

from everturn import tool
from everturn.activities.pace import QUICK, RUNS, ToolPace


@tool
async def lookup() -> str:
    """Looks something up."""
    return "found"


def test_a_tool_is_quick_after_some_quick_runs_in_a_row_and_no_longer_after_a_slow_one() -> None:
    pace = ToolPace()
    for _ in range(RUNS):
        assert not pace.is_quick("agent", lookup)
        pace.ran("agent", "lookup", QUICK / 2)
    assert pace.is_quick("agent", lookup)
    assert not pace.is_quick("another", lookup)
    pace.ran("agent", "lookup", QUICK)
    assert not pace.is_quick("agent", lookup)


def test_a_run_that_was_soon_stopped_tells_nothing_and_one_that_was_stopped_late_was_slow() -> None:
    pace = ToolPace()
    for _ in range(RUNS):
        pace.ran("agent", "lookup", QUICK / 2, cut_off=True)
    assert not pace.is_quick("agent", lookup)
    for _ in range(RUNS):
        pace.ran("agent", "lookup", QUICK / 2)
    pace.ran("agent", "lookup", QUICK / 2, cut_off=True)
    assert pace.is_quick("agent", lookup)
    pace.ran("agent", "lookup", 4.0, cut_off=True)
    assert not pace.is_quick("agent", lookup)


def test_a_tool_whose_author_expects_a_long_run_is_never_quick() -> None:
    pace = ToolPace()
    for _ in range(RUNS):
        pace.ran("agent", "lookup", 0.0)
    assert pace.is_quick("agent", lookup)
    assert not pace.is_quick("agent", replace(lookup, retries=1))
    assert not pace.is_quick("agent", replace(lookup, context_parameter="ctx"))
    assert not pace.is_quick("agent", replace(lookup, timeout=lookup.timeout + 1))
