"""Approve: a person looks before money moves."""

from __future__ import annotations

from everturn import Agent, Approve, tool


@tool
async def send_money(to: str, amount: int) -> str:
    """Send an amount to somebody."""
    return f"sent {amount} to {to}"


class Bank(Agent):
    name = "bank"
    model = "openai/gpt-4o-mini"
    tools = (send_money,)
    hooks = (Approve({"send_*"}, reason="Money leaves the account.", wait=3600),)
