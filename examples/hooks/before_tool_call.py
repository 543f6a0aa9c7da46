"""before_tool_call: let a call run, rewrite it, refuse it, answer it, or ask a person."""

from __future__ import annotations

from everturn import Agent, Allow, Ask, Block, Substitute, ToolCallContext, tool


@tool
async def refund(order_id: str, amount: int) -> str:
    """Refund an order; the amount is in cents."""
    return f"refunded {amount} for {order_id}"


class Cashier(Agent):
    name = "cashier"
    model = "openai/gpt-4o-mini"
    tools = (refund,)

    async def before_tool_call(self, ctx: ToolCallContext) -> Allow | Ask | Block | Substitute | None:
        amount = ctx.input["amount"]
        if amount <= 0:
            return Block("An amount must be positive.")
        if ctx.input["order_id"].startswith("test-"):
            return Substitute(f"pretended to refund {amount}")
        if amount > 100_00:
            return Ask(f"Refund {amount / 100:.2f}?", timeout=3600)
        return Allow(input={**ctx.input, "order_id": ctx.input["order_id"].upper()})
