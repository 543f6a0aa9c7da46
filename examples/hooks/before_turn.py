"""before_turn: refuse a turn, or set what holds for this turn only."""

from __future__ import annotations

from everturn import Agent, Block, TurnConfig, TurnContext


class Bank(Agent):
    name = "bank"
    model = "openai/gpt-4o-mini"
    system = "You answer questions about accounts."

    async def before_turn(self, ctx: TurnContext) -> TurnConfig | Block | None:
        if ctx.principal.is_anonymous:
            return Block("Please sign in first.")
        if "premium" in ctx.principal.roles:
            ctx.log("premium customer", {"id": ctx.principal.id})
            return TurnConfig(model="openai/gpt-4o", max_steps=20)
        return None
