"""Redact: card numbers that nobody may read afterwards. The tool still gets them."""

from __future__ import annotations

from everturn import Agent, Redact, tool

CHARGED: list[str] = []


@tool
async def charge(card: str, amount: int) -> str:
    """Charge a card."""
    CHARGED.append(card)
    return f"charged {amount} to {card}"


class Till(Agent):
    name = "till"
    model = "openai/gpt-4o-mini"
    tools = (charge,)
    hooks = (Redact([r"\b(?:\d{4}[ -]?){3}\d{4}\b"], replacement="[card]"),)
