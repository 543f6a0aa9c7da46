"""Patterns that nobody may read in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from everturn.chunks import (
    REASONING_DELTA,
    REASONING_END,
    TEXT_DELTA,
    TEXT_END,
    TOOL_INPUT_AVAILABLE,
    TOOL_INPUT_DELTA,
    Chunk,
)
from everturn.hooks.contexts import TurnContext
from everturn.hooks.decisions import TurnConfig
from everturn.hooks.hook import Hooks
from everturn.hooks.transforms import ChunkFunction

_DELTAS = frozenset({TEXT_DELTA, REASONING_DELTA})
_ENDS = {TEXT_END: TEXT_DELTA, REASONING_END: REASONING_DELTA}


class Redact(Hooks):
    """Replaces what matches one of `patterns` (regular expressions) in all that a turn streams and stores: the model's
    text and reasoning, and of its tool calls the arguments, outputs, errors and progress. The model sees later what is
    stored, so it meets the replacement too. Tools run with the arguments that the model gave; until a call is settled
    those are kept beside the redacted ones, then they are gone.

    window: the longest match to be found in a stream, in characters. The stream is held back by so much, as the rest of
    a match may be in the next chunk; a longer match may get through in part. user_messages: the user's messages are
    redacted too, before they are stored and before the model sees them.

    Not covered: what the application sends along (`body`, `principal`, metadata, files), the words of hooks (reasons,
    logs) and of providers (traces), and Temporal's history, which has the user's message as it was sent unless
    `history_previews` is off, and the client's own answers to waiting calls.
    """

    on_error = "deny"

    def __init__(
        self,
        patterns: Iterable[str | re.Pattern[str]],
        *,
        replacement: str = "[redacted]",
        window: int = 256,
        user_messages: bool = False,
    ) -> None:
        given = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        if not given or window < 1:
            raise ValueError("Redact needs at least one pattern, and a window of 1 character or more")
        make = MessageRedactor if user_messages else Redactor
        self._transform = f"redact:{self.label}"
        self.transforms = {self._transform: make([re.compile(pattern) for pattern in given], replacement, window)}

    def before_turn(self, ctx: TurnContext) -> TurnConfig:
        return TurnConfig(transforms=[self._transform])


@dataclass(frozen=True)
class Redactor:
    """The transform: holds back the end of each block until it is clear that no match begins there."""

    patterns: list[re.Pattern[str]]
    replacement: str
    window: int

    def for_stream(self) -> ChunkFunction:
        return _Stream(self).apply

    def text(self, text: str) -> str:
        """A whole text, redacted."""
        return self.redacted(text, self.spans(text), 0, len(text))

    def spans(self, text: str, start: int = 0) -> list[tuple[int, int]]:
        """Where something matches from `start` on, in order; what overlaps is one span."""
        found = sorted(m.span() for pattern in self.patterns for m in pattern.finditer(text, start) if m.group())
        merged: list[tuple[int, int]] = []
        for begin, end in found:
            if merged and begin < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return merged

    def redacted(self, text: str, spans: list[tuple[int, int]], start: int, end: int) -> str:
        """`text[start:end]`, in which no span may be cut."""
        pieces: list[str] = []
        for begin, stop in spans:
            if start <= begin and stop <= end:
                pieces += [text[start:begin], self.replacement]
                start = stop
        return "".join([*pieces, text[start:end]])

    def tool_value(self, value: Any) -> Any:
        """JSON data with every string in it redacted, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.tool_value(item) for item in cast(list[object], value)]
        if isinstance(value, dict):
            return {self.text(key): self.tool_value(item) for key, item in cast(dict[str, Any], value).items()}
        return value


class MessageRedactor(Redactor):
    """The transform for `user_messages`."""

    def user_text(self, text: str) -> str:
        """A text of the user, redacted."""
        return self.text(text)


@dataclass
class _Block:
    """A text while it grows. shown: how much of `text` is out; a window of it is kept for patterns that look back."""

    redactor: Redactor
    text: str = ""
    shown: int = 0

    def grow(self, piece: str) -> str:
        """What can be shown now: no match, of at most a window, lies across its end."""
        self.text += piece
        window = self.redactor.window
        cut = max(self.shown, len(self.text) - window)
        spans = self.redactor.spans(self.text, self.shown)
        cut = next((begin for begin, end in spans if begin < cut < end), cut)
        released = self.redactor.redacted(self.text, spans, self.shown, cut)
        forgotten = max(0, cut - window)
        self.text, self.shown = self.text[forgotten:], cut - forgotten
        return released

    def rest(self) -> str:
        return self.redactor.redacted(self.text, self.redactor.spans(self.text, self.shown), self.shown, len(self.text))


@dataclass
class _Stream:
    """One model call."""

    redactor: Redactor
    blocks: dict[str, _Block] = field(default_factory=dict[str, _Block])

    def apply(self, chunk: Chunk) -> list[Chunk]:
        block = str(chunk.data.get("id"))
        if chunk.type in _DELTAS:
            growing = self.blocks.setdefault(block, _Block(self.redactor))
            shown = growing.grow(str(chunk.data["delta"]))
            return [replace(chunk, data={**chunk.data, "delta": shown})] if shown else []
        if chunk.type in _ENDS:
            rest = self.blocks.pop(block, _Block(self.redactor)).rest()
            last = replace(chunk, type=_ENDS[chunk.type], data={"id": block, "delta": rest})
            return [last, chunk] if rest else [chunk]
        if chunk.type == TOOL_INPUT_DELTA:
            return []  # half a JSON text cannot be searched; the whole input follows
        if chunk.type == TOOL_INPUT_AVAILABLE:
            return [replace(chunk, data={**chunk.data, "input": self.redactor.tool_value(chunk.data.get("input"))})]
        return [chunk]
