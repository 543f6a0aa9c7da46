"""Hooks and tools as authors write them, for several tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from everturn import Hooks, TurnInfo, tool
from everturn.hooks.points import HOOK_POINTS
from everturn.turns import HookTraceInfo


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


ADD = 'args=\'{"a": 1, "b": 2}\''
"""Parameter of the scripted model's `tools` scenario: arguments that fit `add`."""


def recording(seen: list[str], label: str, *, asynchronous: bool, base: type[Any] = Hooks) -> type[Any]:
    """A class that implements every point and notes each call as `label.point`."""

    def method(point: str) -> Callable[..., Any]:
        def note(self: object, *arguments: object) -> None:
            seen.append(f"{label}.{point}")

        async def note_async(self: object, *arguments: object) -> None:
            seen.append(f"{label}.{point}")

        return note_async if asynchronous else note

    return type(label, (base,), {point: method(point) for point in HOOK_POINTS})


def hooks(name: str = "Added", **attributes: Any) -> Hooks:
    """A Hooks object with these methods and attributes."""
    made: Hooks = type(name, (Hooks,), attributes)()
    return made


def without_repeats(calls: Iterable[str]) -> list[str]:
    """The calls with equal neighbours as one: how many chunks a step has does not matter."""
    result: list[str] = []
    for call in calls:
        if not result or result[-1] != call:
            result.append(call)
    return result


def traces(info: TurnInfo, point: str, hook: str | None = None) -> list[HookTraceInfo]:
    return [trace for trace in info.hook_traces if trace.point == point and hook in (None, trace.hook)]


def the_trace(info: TurnInfo, point: str, hook: str | None = None) -> HookTraceInfo:
    """The only trace of this point."""
    found = traces(info, point, hook)
    assert len(found) == 1, [f"{trace.point} {trace.hook} {trace.outcome}" for trace in info.hook_traces]
    return found[0]
