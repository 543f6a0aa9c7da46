"""on_chat_error: what people see when a turn fails. The provider's own words stay in the trace."""

from __future__ import annotations

from everturn import Agent, ChatErrorContext, TurnError


class Polite(Agent):
    name = "polite"
    model = "openai/gpt-4o-mini"

    async def on_chat_error(self, error: TurnError, ctx: ChatErrorContext) -> TurnError | None:
        ctx.log("failed", {"stage": ctx.stage, "type": error.type, "class": ctx.classification}, level="error")
        if ctx.stage == "stream":
            return TurnError("model_unavailable", "I cannot answer right now. Please try again in a minute.")
        return None
