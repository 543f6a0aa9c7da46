"""The agent that the measured worker runs."""

from __future__ import annotations

import os

from everturn import Agent, Model, tool


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
