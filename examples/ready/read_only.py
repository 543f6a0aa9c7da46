"""ReadOnly: no tool that changes anything."""

from __future__ import annotations

from everturn import Agent, ReadOnly, tool


@tool
async def show_order(number: int) -> str:
    """Show an order."""
    return f"order {number}: tea"


@tool
async def cancel_order(number: int) -> str:
    """Cancel an order."""
    return f"order {number} is cancelled"


class Auditor(Agent):
    name = "auditor"
    model = "openai/gpt-4o-mini"
    tools = (show_order, cancel_order)
    hooks = (ReadOnly({"cancel_*", "change_*"}),)
