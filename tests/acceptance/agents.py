"""Agents for the commands under test; their models are scenarios of the scripted model server."""

from __future__ import annotations

import os

from everturn import Agent, Model, StoredTurnCode, TurnConfig, TurnContext, tool

BASE = os.environ["TEST_MODEL_SERVER"]


def scripted(scenario: str) -> Model:
    return Model(f"openai/{scenario}", api_base=BASE)


class Quick(Agent):
    name = "quick"
    model = scripted("text:tokens=5")


class Slow(Agent):
    name = "slow"
    model = scripted("text:tokens=400,delay_ms=100")


class Refused(Agent):
    name = "refused"
    model = scripted("status:code=401")


@tool(needs_approval=True)
async def delete_order(order_id: str) -> dict[str, str]:
    """Delete an order by its number."""
    return {"deleted": order_id}


class Careful(Agent):
    name = "careful"
    model = "demo"
    tools = (delete_order,)


class Coded(Agent):
    name = "coded"
    model = scripted("text:tokens=5")
    hooks = (StoredTurnCode(),)


class Watched(Agent):
    name = "watched"
    model = scripted("text:tokens=2")

    async def before_turn(self, ctx: TurnContext) -> TurnConfig:
        ctx.log("cooler", {"from": ctx.temperature})
        return TurnConfig(temperature=0.1)
