"""The agent of the soak's worker: an ordinary tool, one that asks, and one that looks at the worker itself."""

from __future__ import annotations

import asyncio
import os

from everturn import Agent, Model, tool


@tool(idempotent=True)
async def lookup(n: int) -> str:
    """Looks something up."""
    return f"result {n}"


@tool(needs_approval=True)
async def refund(amount: int) -> str:
    """Pays money back, once somebody has agreed."""
    return f"refunded {amount}"


@tool
async def census() -> int:
    """How many asyncio tasks this worker has."""
    return len(asyncio.all_tasks())


class Soak(Agent):
    """The scenario rides in the message."""

    name = "soak"
    model = Model("openai/scripted", api_base=os.environ["BENCH_MODEL_URL"])
    system = "You are a helpful assistant."
    tools = (lookup, refund, census)
