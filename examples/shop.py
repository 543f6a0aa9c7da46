from everturn import Agent, TurnConfig, tool


@tool
async def order_status(order_id: str) -> dict:
    """Status of an order by its number."""
    return {"order_id": order_id, "status": "shipped"}


class Shop(Agent):
    name = "shop"  # stored with every turn, so keep it stable
    model = "demo"  # or "openai/gpt-4o-mini", "anthropic/…", "ollama_chat/…"
    system = "You help the customers of a tea shop."
    tools = [order_status]

    async def before_turn(self, ctx):
        if "poem" in str(ctx.messages[-1]):
            return TurnConfig(temperature=1.0)
