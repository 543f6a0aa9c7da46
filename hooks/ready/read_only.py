"""No tool that changes anything."""

from __future__ import annotations

from collections.abc import Collection

from everturn.hooks.contexts import ToolCallContext
from everturn.hooks.decisions import Block
from everturn.hooks.hook import Hooks


class ReadOnly(Hooks):
    """Blocks the calls of tools that match one of `patterns` (shell style: "delete_*"); the model gets `reason`."""

    on_error = "deny"

    def __init__(
        self, patterns: Collection[str], reason: str = "This conversation is read-only; the call was not run."
    ) -> None:
        if isinstance(patterns, str) or not patterns:
            raise ValueError(f"ReadOnly needs a set of tool-name patterns, not {patterns!r}")
        self.tools = frozenset(patterns)
        self._reason = reason

    def before_tool_call(self, ctx: ToolCallContext) -> Block:
        return Block(self._reason)
