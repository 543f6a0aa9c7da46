"""after_tool_call: sees every outcome, and may replace what the model and clients get to see."""

from __future__ import annotations

from everturn import Agent, Replace, ToolCallResultContext, tool


@tool(idempotent=True)
async def find_customer(email: str) -> dict[str, str]:
    """Find a customer by email address."""
    return {"email": email, "name": "Ada", "iban": "DE02 1203 0000 0000 2020 51"}


class Desk(Agent):
    name = "desk"
    model = "openai/gpt-4o-mini"
    tools = (find_customer,)

    async def after_tool_call(self, ctx: ToolCallResultContext) -> Replace | None:
        if not ctx.success:
            ctx.log("failed", {"tool": ctx.tool_name, "error": ctx.error}, level="warn")
            return None
        if isinstance(ctx.output, dict) and "iban" in ctx.output:
            return Replace({**ctx.output, "iban": "(hidden)"})
        return None
