"""The hook points: their names, and the methods that an author overrides."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeAlias, TypeVar

from everturn.chunks import Chunk
from everturn.hooks.contexts import (
    ChatErrorContext,
    ChatResponseResult,
    ChunkContext,
    StepContext,
    StepResult,
    ToolCallContext,
    ToolCallResultContext,
    TurnContext,
    TurnEndResult,
)
from everturn.hooks.decisions import Block, NextModel, Replace, StepConfig, ToolDecision, TurnConfig
from everturn.turns import TurnError

T = TypeVar("T")
Answer: TypeAlias = T | Awaitable[T]
"""A hook is `def` (it then runs in a thread) or `async def`."""

BEFORE_TURN: Final = "before_turn"
BEFORE_STEP: Final = "before_step"
ON_CHUNK: Final = "on_chunk"
BEFORE_TOOL_CALL: Final = "before_tool_call"
AFTER_TOOL_CALL: Final = "after_tool_call"
ON_STEP_FINISH: Final = "on_step_finish"
ON_CHAT_RESPONSE: Final = "on_chat_response"
ON_CHAT_ERROR: Final = "on_chat_error"
CLASSIFY_CHAT_ERROR: Final = "classify_chat_error"
ON_TURN_END: Final = "on_turn_end"

HOOK_POINTS: Final = (
    BEFORE_TURN,
    BEFORE_STEP,
    ON_CHUNK,
    BEFORE_TOOL_CALL,
    AFTER_TOOL_CALL,
    ON_STEP_FINISH,
    ON_CHAT_RESPONSE,
    ON_CHAT_ERROR,
    CLASSIFY_CHAT_ERROR,
    ON_TURN_END,
)


class HookMethods:
    """Every point as a method that does nothing. A point that nobody overrides is never scheduled.

    Hooks are at-least-once: after a crash a hook may run again with the same `ctx.idempotency_key`.
    """

    def before_turn(self, ctx: TurnContext) -> Answer[TurnConfig | Block | None]:
        """The prompt is assembled, no model call was made yet."""
        return None

    def before_step(self, ctx: StepContext) -> Answer[StepConfig | None]:
        """Before each model call."""
        return None

    def on_chunk(self, chunk: Chunk, ctx: ChunkContext) -> Answer[None]:
        """Each streamed chunk of a model call, in order; observes only, off the way to the client. `chunk.seq` counts
        within the attempt."""

    def before_tool_call(self, ctx: ToolCallContext) -> Answer[ToolDecision | None]:
        """Before a tool runs."""
        return None

    def after_tool_call(self, ctx: ToolCallResultContext) -> Answer[Replace | None]:
        """The outcome of a tool call is known: it ran, was blocked, was substituted, or raised."""
        return None

    def on_step_finish(self, ctx: StepResult) -> Answer[None]:
        """A model call and its tool calls are complete."""

    def on_chat_response(self, result: ChatResponseResult) -> Answer[None]:
        """The assistant message is stored and the thread is free again: the next turn may be submitted from here."""

    def on_chat_error(self, error: TurnError, ctx: ChatErrorContext) -> Answer[TurnError | Exception | str | None]:
        """A turn failed, exactly once per turn; returns the error to show instead."""
        return None

    def classify_chat_error(self, error: Exception | str, ctx: ChatErrorContext) -> Answer[str | NextModel | None]:
        """A model call failed: context_overflow, rate_limit, transient, fatal or unknown; None = the default table.

        error: litellm's exception; a text for an error inside the stream."""
        return None

    def on_turn_end(self, result: TurnEndResult) -> Answer[None]:
        """The turn reached a terminal status, whichever."""


def implements(owner: HookMethods, point: str) -> bool:
    """True if `owner` overrides the method of this point."""
    return getattr(type(owner), point) is not getattr(HookMethods, point)
