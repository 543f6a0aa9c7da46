"""The agent that worker processes of the chaos tests run. Where its model server is comes from the environment."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from everturn import Agent, Model, tool

EFFECTS = Path(os.environ["CHAOS_EFFECTS"])
"""One line for each time a tool took effect."""


def note(effect: str) -> None:
    with EFFECTS.open("a") as file:
        file.write(f"{effect}\n")


@tool
async def charge(amount: int) -> str:
    """Charges a card; running it twice would charge twice."""
    note(f"charge {amount}")
    await asyncio.sleep(float(os.environ.get("CHAOS_TOOL_SECONDS", "0")))
    return f"charged {amount}"


@tool(idempotent=True)
async def store_note(text: str) -> str:
    """Stores a note; running it twice is the same as once."""
    note(f"note {text}")
    await asyncio.sleep(float(os.environ.get("CHAOS_TOOL_SECONDS", "0")))
    return f"stored {text}"


class Chaos(Agent):
    """Scenario by message, as in the other tests."""

    name = "chaos"
    model = Model("openai/scripted", api_base=os.environ["CHAOS_MODEL_URL"])
    tools = (charge, store_note)
