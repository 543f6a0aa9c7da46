"""A shop's assistant with one tool and one hook. Try it:  everturn dev examples/support.py"""

from __future__ import annotations

from everturn import Agent, Block, TurnConfig, TurnContext, tool

ORDERS = {
    "1001": {"status": "shipped", "items": ["kettle"], "arrives": "tomorrow"},
    "1002": {"status": "being packed", "items": ["teapot", "two cups"], "arrives": "on Friday"},
}


@tool(idempotent=True)
async def order_status(order_id: str) -> dict[str, object]:
    """Status of an order by its number."""
    order = ORDERS.get(order_id.strip().lstrip("#"))
    return {"found": order is not None, "order_id": order_id, **(order or {})}


class Support(Agent):
    name = "support"
    model = "demo"  # rules, no key needed; "openai/gpt-4o-mini" or any litellm model string works as well
    system = "You are the friendly assistant of a tea shop. Look orders up before you speak about them."
    tools = (order_status,)

    async def before_turn(self, ctx: TurnContext) -> TurnConfig | Block | None:
        if ctx.principal.is_anonymous and "order" in str(ctx.messages[-1]):
            return Block("Please sign in, then I can look at your orders.")
        return None
