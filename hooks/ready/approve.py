"""A person looks before it happens."""

from __future__ import annotations

from collections.abc import Collection

from everturn.hooks.contexts import ToolCallContext
from everturn.hooks.decisions import APPROVAL_TIMEOUT, Ask
from everturn.hooks.hook import Hooks


class Approve(Hooks):
    """Asks for approval of the calls of tools that match one of `patterns` (shell style: "send_*"), whichever agent.

    reason: shown with the question. wait: seconds until silence counts as a denial.
    """

    on_error = "deny"

    def __init__(self, patterns: Collection[str], reason: str = "", wait: float = APPROVAL_TIMEOUT) -> None:
        if isinstance(patterns, str) or not patterns:
            raise ValueError(f"Approve needs a set of tool-name patterns, not {patterns!r}")
        if not wait > 0:
            raise ValueError(f"wait must be more than 0 seconds, not {wait!r}")
        self.tools = frozenset(patterns)
        self._answer = Ask(reason, wait)

    def before_tool_call(self, ctx: ToolCallContext) -> Ask:
        return self._answer
