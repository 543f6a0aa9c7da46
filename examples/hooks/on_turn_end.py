"""on_turn_end: every ending, also of turns that were blocked, cancelled or never began."""

from __future__ import annotations

from collections import Counter

from everturn import Agent, Block, TurnContext, TurnEndResult

ENDINGS: Counter[str] = Counter()


class Counted(Agent):
    name = "counted"
    model = "openai/gpt-4o-mini"

    async def before_turn(self, ctx: TurnContext) -> Block | None:
        return Block("We are closed.") if ctx.body and ctx.body.get("closed") else None

    async def on_turn_end(self, result: TurnEndResult) -> None:
        ENDINGS[f"{result.status}/{result.stop_reason}"] += 1
