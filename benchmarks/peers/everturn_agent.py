"""The agent that Everturn's worker runs in the comparison."""

from __future__ import annotations

import os

from everturn import Agent, Model, tool


@tool
async def lookup(turn: str, n: int) -> str:  # noqa: ARG001
    """Looks something up."""
    return f"result {n}"


class Bench(Agent):
    """The script rides in the message."""

    name = "bench"
    model = Model("openai/fake", api_base=os.environ["BENCH_MODEL_URL"])
    system = "You are a helpful assistant. Use the lookup tool when you are asked to."
    tools = (lookup,)
