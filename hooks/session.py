"""`configure_session`: what an agent says once per worker start about the conversations it will have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, cast

from everturn.checks import check_count, shown
from everturn.errors import BadInput, InvalidAgent
from everturn.turns import JsonDict, Principal

KEEP_LAST: Final = 4
TOOL_OUTPUT_CHARACTERS: Final = 500
TEXT_CHARACTERS: Final = 10_000
HEADROOM: Final = 0.9

TokenCounter = Callable[[list[JsonDict]], int]
"""Tokens of messages in OpenAI's chat format."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """Given to a provider of a context block: for whom the block is assembled."""

    thread_id: str
    agent: str
    principal: Principal
    tenant_id: str | None


BlockText = str | Callable[[ContextRequest], str | Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A labelled part of the system prompt. max_tokens: longer text is cut."""

    label: str
    text: BlockText
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    """How older messages are shortened when a prompt is read; what is stored stays whole. Sizes in characters."""

    keep_last: int = KEEP_LAST
    tool_output: int = TOOL_OUTPUT_CHARACTERS
    text: int = TEXT_CHARACTERS


@dataclass(frozen=True, slots=True)
class Compacted:
    """Given to `on_compaction` callbacks. folded: how many messages the summary stands for. tokens: estimates."""

    thread_id: str
    summary: str
    folded: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """What `Session` has collected. compact_after and max_input_tokens: tokens; max_retries: re-runs of a step after
    the provider found its prompt too long; max_compactions: per turn, ahead of such an error."""

    blocks: tuple[ContextBlock, ...] = ()
    truncation: Truncation = field(default_factory=Truncation)
    count_tokens: TokenCounter | None = None
    compact_after: int | None = None
    summary_model: str | None = None
    callbacks: tuple[Callable[[Compacted], Any], ...] = ()
    reactive: bool = True
    max_retries: int = 1
    max_input_tokens: int | None = None
    headroom: float = HEADROOM
    max_compactions: int = 1

    @property
    def token_limit(self) -> int | None:
        """Estimated prompt tokens from which the thread is compacted before the model is asked; None = never."""
        limits = [self.compact_after] if self.compact_after is not None else []
        if self.max_input_tokens is not None:
            limits.append(int(self.max_input_tokens * self.headroom))
        return min(limits, default=None)


class Session:
    """A builder; every method returns the session. Wrong values raise InvalidAgent, which names the agent."""

    def __init__(self) -> None:
        self.config = SessionConfig()

    def context(self, label: str, text: BlockText, max_tokens: int | None = None) -> Self:
        """Adds a block to the system prompt. A provider (a function of a ContextRequest, `async` or not) is asked once
        per thread; what it says is kept, so that provider caches keep hitting, until `refresh_context`."""
        if not isinstance(cast(object, label), str) or not label or any(b.label == label for b in self.config.blocks):
            raise InvalidAgent(f"context needs a label that is not taken, not {shown(label)}")
        if not isinstance(cast(object, text), str) and not callable(cast(object, text)):
            raise InvalidAgent(f"context {label!r} needs a text or a function, not {shown(text)}")
        _positive("max_tokens", max_tokens)
        block = ContextBlock(label, text, max_tokens)
        return self._with(blocks=(*self.config.blocks, block))

    def compact_after(self, tokens: int, token_counter: TokenCounter | None = None, model: str | None = None) -> Self:
        """Folds the middle of a thread into a summary once its prompt has about this many tokens.

        token_counter: default four characters a token. model: writes the summaries; default the agent's own.
        """
        _positive("tokens", tokens)
        counter = token_counter or self.config.count_tokens
        return self._with(compact_after=tokens, count_tokens=counter, summary_model=model or self.config.summary_model)

    def on_compaction(self, callback: Callable[[Compacted], Any]) -> Self:
        """Calls the function (`async` or not) after each compaction; what it raises is logged."""
        if not callable(cast(object, callback)):
            raise InvalidAgent(f"on_compaction needs a function, not {shown(callback)}")
        return self._with(callbacks=(*self.config.callbacks, callback))

    def context_overflow(
        self,
        *,
        reactive: bool = True,
        max_retries: int = 1,
        max_input_tokens: int | None = None,
        headroom: float = HEADROOM,
        max_compactions: int = 1,
    ) -> Self:
        """What to do about prompts that are too long. reactive: compact and ask again when the provider refuses one, at
        most `max_retries` times. max_input_tokens: compact ahead, at this limit × headroom, at most `max_compactions`
        times a turn."""
        _positive("max_input_tokens", max_input_tokens)
        if not isinstance(cast(object, headroom), int | float) or not 0 < headroom <= 1:
            raise InvalidAgent(f"headroom must be over 0 and at most 1, not {shown(headroom)}")
        _whole("max_retries", max_retries, least=0)
        _whole("max_compactions", max_compactions, least=0)
        return self._with(
            reactive=reactive,
            max_retries=max_retries,
            max_input_tokens=max_input_tokens,
            headroom=headroom,
            max_compactions=max_compactions,
        )

    def truncation(
        self, keep_last: int = KEEP_LAST, tool_output: int = TOOL_OUTPUT_CHARACTERS, text: int = TEXT_CHARACTERS
    ) -> Self:
        """How much of older messages the model sees: all but the last `keep_last` messages are cut to these sizes."""
        for name, value in (("keep_last", keep_last), ("tool_output", tool_output), ("text", text)):
            _whole(name, value)
        return self._with(truncation=Truncation(keep_last, tool_output, text))

    def _with(self, **changes: Any) -> Self:
        self.config = replace(self.config, **changes)
        return self


def _positive(name: str, value: object) -> None:
    if value is not None:
        _whole(name, value)


def _whole(name: str, value: object, least: int = 1) -> None:
    try:
        check_count(value, name, least=least)
    except BadInput as error:
        raise InvalidAgent(str(error)) from error
