"""When a turn stops although the model wants to go on: rules that need no code, and the author's own functions.

All are looked at after each step that called tools; a step without calls ends the turn anyway.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from everturn.hooks.contexts import StepFacts
from everturn.hooks.references import reference_to
from everturn.turns import Usage, UsageSum

StopScope = Literal["turn", "thread", "user"]


@dataclass(frozen=True)
class StopRule:
    """Stops the turn when one of its limits is reached. Made by the functions below.

    steps: finished steps. tools: patterns of tool names, met by a call of the latest step. tokens: input and output.
    cost: US dollars; a step whose price is unknown counts as 0. seconds: since the turn began to run.

    scope: whose use counts: the turn's own, or that of all turns of its thread or its user, in the last `window`
    seconds if that is given. `seconds` are then those of model calls.
    """

    steps: int | None = None
    tools: list[str] = field(default_factory=list[str])
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    scope: StopScope = "turn"
    window: float | None = None

    @property
    def shared(self) -> bool:
        """Other turns count too, so the store has to be asked."""
        return self.scope != "turn"

    def met(self, *, steps: int, called: Sequence[str], usage: Usage, seconds: float) -> bool:
        reached = (
            (steps, self.steps),
            (usage.total_tokens, self.tokens),
            (usage.cost or 0.0, self.cost),
            (seconds, self.seconds),
        )
        if any(limit is not None and value >= limit for value, limit in reached):
            return True
        return any(fnmatch.fnmatchcase(name, pattern) for name in called for pattern in self.tools)

    def excess(self, used: UsageSum) -> str | None:
        """For a shared rule: which of its limits is reached, in words; None if none is."""
        values = (
            ("{:,} of {:,} tokens", used.usage.total_tokens, self.tokens),
            ("${:,.2f} of ${:,.2f}", used.usage.cost or 0.0, self.cost),
            ("{:,} of {:,} model calls", used.steps, self.steps),
            ("{:,.1f} of {:,.1f} seconds of model calls", used.model_seconds, self.seconds),
        )
        words = next((text.format(value, at) for text, value, at in values if at is not None and value >= at), None)
        span = f" in the last {span_of(self.window)}" if self.window is not None else ""
        return words + span if words else None


StopCondition: TypeAlias = StopRule | Callable[[Sequence[StepFacts]], bool | Awaitable[bool]]
"""A rule, or a function at the top level of a module that looks at the finished steps, the latest last."""


def has_tool_call(*names: str) -> StopRule:
    """Stop after a step that called one of these tools (shell-style patterns); its result is stored."""
    if not names:
        raise ValueError("has_tool_call needs at least one tool name")
    return StopRule(tools=list(names))


def step_count_is(count: int) -> StopRule:
    """Stop after so many steps."""
    if count < 1:
        raise ValueError(f"step_count_is needs 1 or more, not {count!r}")
    return StopRule(steps=count)


def spent(
    *,
    tokens: int | None = None,
    cost: float | None = None,
    seconds: float | None = None,
    steps: int | None = None,
    scope: StopScope = "turn",
    window: timedelta | None = None,
) -> StopRule:
    """Stop once so many tokens, US dollars, seconds or model calls are used up.

    scope: by this turn, or by all turns of its thread or its user that were submitted in the last `window` (None:
    ever). For a thread or a user, seconds are those of model calls.
    """
    limits = [limit for limit in (tokens, cost, seconds, steps) if limit is not None]
    if not limits or any(not limit > 0 for limit in limits):
        raise ValueError("spent needs at least one limit, and limits above 0")
    if scope not in get_args(StopScope):
        raise ValueError(f"scope must be one of {', '.join(get_args(StopScope))}, not {scope!r}")
    if window is not None and (scope == "turn" or not window > timedelta()):
        raise ValueError(f"a window needs scope 'thread' or 'user', and a time above 0, not {window!r}")
    return StopRule(
        tokens=tokens,
        cost=cost,
        seconds=seconds,
        steps=steps,
        scope=scope,
        window=window.total_seconds() if window is not None else None,
    )


def span_of(seconds: float) -> str:
    """A length of time in its largest unit that fits: 1 day, 90 minutes, 2.5 seconds."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g} {unit}{'' if seconds == length else 's'}"
    return f"{seconds:g} seconds"


def as_stored(condition: Any) -> Any:
    """A condition as a turn's settings keep it: a rule as it is, a function by its name."""
    return reference_to(condition, "stop condition") if callable(condition) else condition
