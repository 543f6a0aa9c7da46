"""Hooks that are added to an agent as objects: reusable, ordered, limited, and failing open."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from everturn.hooks.points import HookMethods
from everturn.hooks.transforms import Transforms

OnError = Literal["continue", "raise", "deny"]

HOOK_TIMEOUT = 30.0
"""Seconds that one run of an added hook may take."""
MAX_RETURN_BYTES = 128 * 1024
"""Size of an added hook's answer as JSON."""


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@dataclass(frozen=True, slots=True)
class Order:
    """Constraints on the place of a hook among an agent's added hooks, by their names."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def __init__(self, before: str | Iterable[str] = (), after: str | Iterable[str] = ()) -> None:
        object.__setattr__(self, "before", _names(before))
        object.__setattr__(self, "after", _names(after))


class HookTrouble(Exception):
    """Raised by a hook that runs something else, such as text in a process, to say how that failed."""

    def __init__(self, outcome: Literal["error", "invalid", "oversize"], message: str) -> None:
        self.outcome: Literal["error", "invalid", "oversize"] = outcome
        super().__init__(message)


class Hooks(HookMethods):
    """Subclass it, override the points you need, and list an object of it in `Agent.hooks`.

    name: shown in traces, unique per agent; default: the class name. tools: shell-style patterns; only tool calls that
    fit reach `before_tool_call` and `after_tool_call`. timeout: seconds a run. transforms: chunk transforms that it
    brings along, for its `TurnConfig.transforms`.

    on_error: what a raise, a timeout, an invalid or oversized answer does. "continue" leaves the turn as it was.
    "raise" counts like a raise of the agent's own method. "deny" refuses: the turn (in `before_turn` with a block, in
    `before_step` as an error), the tool call, or the tool's output (in `after_tool_call`). Points that only observe
    are traced in every case.
    """

    name: str | None = None
    tools: Collection[str] | None = None
    timeout: float = HOOK_TIMEOUT
    on_error: OnError = "continue"
    order: Order = Order()
    transforms: Transforms = {}  # noqa: RUF012 - a class attribute that subclasses replace
    max_return_bytes: ClassVar[int] = MAX_RETURN_BYTES
    log_tag: ClassVar[str | None] = None
    """What its log lines are tagged with, None for `hook:<point>:<name>`."""

    @property
    def label(self) -> str:
        return self.name or type(self).__name__
