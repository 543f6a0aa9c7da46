"""Fallback: another model while the first one is busy, and one with more room for a prompt that is too long."""

from __future__ import annotations

from everturn import Agent, Fallback


class Steady(Agent):
    name = "steady"
    model = "anthropic/claude-sonnet-4-5"
    hooks = (
        Fallback(
            {
                "rate_limit": ["openai/gpt-4o", "openai/gpt-4o-mini"],
                "transient": "openai/gpt-4o",
                "context_overflow": "openai/gpt-4.1",
            }
        ),
    )
