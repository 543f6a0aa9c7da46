"""Telemetry: which turns an operator is told of, and with what beside the facts."""

from __future__ import annotations

from everturn import Agent, Telemetry, TurnConfig, TurnContext


class Watched(Agent):
    name = "watched"
    model = "openai/gpt-4o-mini"

    async def before_turn(self, ctx: TurnContext) -> TurnConfig | None:
        if ctx.tenant_id is None:
            return None
        return TurnConfig(telemetry=Telemetry(function_id="support-chat", attributes={"tenant": ctx.tenant_id}))
