"""How long tools take on this worker: those that are quick need no activity task of their own."""

from __future__ import annotations

from typing import Final

from everturn.hooks.tools import DEFAULT_TOOL_TIMEOUT, Tool

QUICK: Final = 0.1
"""Seconds. A quick tool runs within the workflow task, where a cancel waits until it ends: no longer than a cancel may
take anyway."""
RUNS: Final = 3
"""Quick runs in a row after which a tool counts as quick; a single slow one starts the count again."""

QUICK_CALLS: Final = 8
"""Calls of one step up to which quick tools run so. More of them would make the workflow task long; each has a task of
its own then, which other workers can take, and that is no slower."""


class ToolPace:
    """The pace of each agent's tools, learned from their runs in this process."""

    def __init__(self) -> None:
        self._quick_runs: dict[tuple[str, str], int] = {}

    def ran(self, agent: str, tool: str, seconds: float, *, cut_off: bool = False) -> None:
        """Notes a run. cut_off: it was stopped, so it would have taken longer: a short one tells nothing."""
        if seconds >= QUICK:
            self._quick_runs[agent, tool] = 0
        elif not cut_off:
            self._quick_runs[agent, tool] = min(self._quick_runs.get((agent, tool), 0) + 1, RUNS)

    def is_quick(self, agent: str, tool: Tool) -> bool:
        """Never true where an author expects a long run: with retries, a ToolContext, or a long timeout."""
        if tool.retries or tool.context_parameter is not None or tool.timeout > DEFAULT_TOOL_TIMEOUT:
            return False
        return self._quick_runs.get((agent, tool.name), 0) >= RUNS
