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


class Everywhere(Agent):
    """The same with every hook point implemented."""

    name = "hooked"
    model = Bench.model
    system = Bench.system
    tools = Bench.tools
    hooks = (type("Noop", (Hooks,), dict.fromkeys(HOOK_POINTS, nothing))(),)
