"""When a turn stops although the model wants to go on: rules that need no code, and the author's own functions.

All are looked at after each step that called tools; a step without calls ends the turn anyway.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from everturn.hooks.contexts import StepFacts
from everturn.hooks.references import reference_to
from everturn.turns import Usage


@dataclass(frozen=True)
class StopRule:
    """Stops the turn when one of its limits is reached. Made by the functions below.

    steps: finished steps. tools: patterns of tool names, met by a call of the latest step. tokens: input and output.
    cost: US dollars; a step whose price is unknown counts as 0. seconds: since the turn began to run.
    """

    steps: int | None = None
    tools: list[str] = field(default_factory=list[str])
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None

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


def spent(*, tokens: int | None = None, cost: float | None = None, seconds: float | None = None) -> StopRule:
    """Stop once the turn has used so many tokens, US dollars, or seconds."""
    limits = [limit for limit in (tokens, cost, seconds) if limit is not None]
    if not limits or any(not limit > 0 for limit in limits):
        raise ValueError("spent needs at least one limit, and limits above 0")
    return StopRule(tokens=tokens, cost=cost, seconds=seconds)


def as_stored(condition: Any) -> Any:
    """A condition as a turn's settings keep it: a rule as it is, a function by its name."""
    return reference_to(condition, "stop condition") if callable(condition) else condition
