"""Budget: what one turn, one conversation and one user may use."""

from __future__ import annotations

from datetime import timedelta

from everturn import Agent, Budget


class Frugal(Agent):
    name = "frugal"
    model = "openai/gpt-4o-mini"
    hooks = (
        Budget(tokens=50_000, steps=8),  # a turn
        Budget(scope="thread", cost=2.00),  # a conversation, ever
        Budget(scope="user", window=timedelta(days=1), steps=2, reason="That was all for today."),
    )
