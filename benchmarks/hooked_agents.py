"""The measured agent without hooks, and with hooks that leave everything as it is: at each point, and at all.

A worker with hooks at classify_chat_error loads litellm, so these are apart from the agent of the other benchmarks.
"""

from __future__ import annotations

from typing import Any

from benchmarks.agents import Bench
from everturn import Agent, Hooks
from everturn.hooks.points import HOOK_POINTS


async def nothing(self: object, *arguments: Any) -> None:
    """A hook that leaves everything as it is."""


def hooked(name: str, *points: str) -> Agent:
    """The same with hooks at these points."""
    noop: Hooks = type("Noop", (Hooks,), dict.fromkeys(points, nothing))()
    agent: Agent = type("Hooked", (Bench,), {"name": name, "hooks": (noop,)})()
    return agent


bench = Bench()
everywhere = hooked("hooked", *HOOK_POINTS)
globals().update({f"only_{point}": hooked(point, point) for point in HOOK_POINTS})
