"""The agents that the measured worker runs."""

from __future__ import annotations

import os
from typing import Any

from everturn import Agent, Hooks, Model, tool
from everturn.hooks.points import HOOK_POINTS


@tool(idempotent=True)
async def lookup(n: int) -> str:
    """Looks something up."""
    return f"result {n}"


class Bench(Agent):
    """The scenario rides in the message."""

    name = "bench"
    model = Model("openai/scripted", api_base=os.environ["BENCH_MODEL_URL"])
    system = "You are a helpful assistant."
    tools = (lookup,)


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
