"""Chunk transforms: functions that rewrite or drop chunks of the model's answer before anyone sees or stores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from everturn.chunks import (
    REASONING_DELTA,
    REASONING_END,
    REASONING_START,
    TEXT_DELTA,
    TEXT_END,
    TEXT_START,
    TOOL_INPUT_AVAILABLE,
    TOOL_INPUT_DELTA,
    TOOL_INPUT_START,
    Chunk,
)

ChunkFunction: TypeAlias = Callable[[Chunk], Chunk | Sequence[Chunk] | None]
"""Gives the chunk to show instead, several, or None to drop it. Runs for every chunk on the way to the client: plain
`def`, quick, and without waiting for anything. One that raises drops the chunk: nothing unchecked gets through."""

TRANSFORMED: Final = frozenset(
    {
        TEXT_START,
        TEXT_DELTA,
        TEXT_END,
        REASONING_START,
        REASONING_DELTA,
        REASONING_END,
        TOOL_INPUT_START,
        TOOL_INPUT_DELTA,
        TOOL_INPUT_AVAILABLE,
    }
)
"""The chunks that transforms see: the model's own words. What is stored of text and reasoning is what they let through;
tools run with the arguments that the model gave. For what is stored and shown of tool calls, see ToolTransform."""


@runtime_checkable
class StreamTransform(Protocol):
    """A transform that has to remember something from chunk to chunk."""

    def for_stream(self) -> ChunkFunction:
        """A function for one model call."""
        ...


@runtime_checkable
class ToolTransform(Protocol):
    """A transform that also has a say on what is stored and shown of tool calls, to the model too."""

    def tool_value(self, value: Any) -> Any:
        """A JSON value to stand for this one: arguments, an output, an error's text, progress. Called for each, and
        more than once for some; one that raises withholds the value."""
        ...


@runtime_checkable
class MessageTransform(Protocol):
    """A transform that also changes the user's own messages, in every turn of the agent and before they are stored."""

    def user_text(self, text: str) -> str:
        """The text to store and to show to the model. One that raises refuses the turn."""
        ...


ChunkTransform: TypeAlias = ChunkFunction | StreamTransform
Transforms: TypeAlias = Mapping[str, ChunkTransform]


def opened(transform: ChunkTransform) -> ChunkFunction:
    """The function for one model call."""
    return transform.for_stream() if isinstance(transform, StreamTransform) else transform
