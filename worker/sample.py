"""The sample agent of `everturn demo`: a shop's assistant that can look orders up."""

from __future__ import annotations

import os
from typing import Final

from everturn.hooks.agent import Agent
from everturn.hooks.tools import tool

MODEL_VARIABLE: Final = "EVERTURN_DEMO_MODEL"
"""The environment variable that gives the sample agent another model."""
ORDERS = {
    "1001": {"status": "shipped", "items": ["kettle"], "arrives": "tomorrow"},
    "1002": {"status": "being packed", "items": ["teapot", "two cups"], "arrives": "on Friday"},
}


@tool(idempotent=True)
async def order_status(order_id: str) -> dict[str, object]:
    """Status of an order by its number."""
    order = ORDERS.get(order_id.strip().lstrip("#"))
    if order is None:
        return {"found": False, "order_id": order_id, "known_orders": sorted(ORDERS)}
    return {"found": True, "order_id": order_id, **order}


class Support(Agent):
    """Runs on the built-in `demo` model: simple rules, no key, no network. Any model string may stand there."""

    name = "support"
    model = os.environ.get(MODEL_VARIABLE, "demo")
    system = "You are the friendly assistant of a tea shop. Look orders up before you speak about them."
    tools = (order_status,)
