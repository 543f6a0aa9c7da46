"""The agent that worker processes of the chaos tests run. Where its model server is comes from the environment."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from everturn import (
    Agent,
    ChatErrorContext,
    ChatResponseResult,
    Model,
    StepContext,
    StepResult,
    ToolCallContext,
    ToolCallResultContext,
    TurnContext,
    TurnEndResult,
    TurnError,
    tool,
)

EFFECTS = Path(os.environ["CHAOS_EFFECTS"])
"""One line for each time a tool took effect."""


def note(effect: str) -> None:
    with EFFECTS.open("a") as file:
        file.write(f"{effect}\n")


@tool
async def charge(amount: int) -> str:
    """Charges a card; running it twice would charge twice."""
    note(f"charge {amount}")
    await asyncio.sleep(float(os.environ.get("CHAOS_TOOL_SECONDS", "0")))
    return f"charged {amount}"


@tool(idempotent=True)
async def store_note(text: str) -> str:
    """Stores a note; running it twice is the same as once."""
    note(f"note {text}")
    await asyncio.sleep(float(os.environ.get("CHAOS_TOOL_SECONDS", "0")))
    return f"stored {text}"


class Chaos(Agent):
    """Scenario by message, as in the other tests."""

    name = "chaos"
    model = Model("openai/scripted", api_base=os.environ["CHAOS_MODEL_URL"])
    tools = (charge, store_note)


async def pause_at(point: str, ctx: Any) -> None:
    """Notes the run of a hook, by its key; stays in it where the worker is to be killed."""
    if os.environ.get("CHAOS_HOOK") == point:
        note(f"{point} {ctx.idempotency_key}")
        await asyncio.sleep(float(os.environ.get("CHAOS_HOOK_SECONDS", "0")))


class Watched(Chaos):
    """Its hooks can be stopped in."""

    name = "watched"

    async def before_turn(self, ctx: TurnContext) -> None:
        await pause_at("before_turn", ctx)

    async def before_step(self, ctx: StepContext) -> None:
        await pause_at("before_step", ctx)

    async def before_tool_call(self, ctx: ToolCallContext) -> None:
        await pause_at("before_tool_call", ctx)

    async def after_tool_call(self, ctx: ToolCallResultContext) -> None:
        await pause_at("after_tool_call", ctx)

    async def on_step_finish(self, ctx: StepResult) -> None:
        await pause_at("on_step_finish", ctx)

    async def on_chat_error(self, error: TurnError, ctx: ChatErrorContext) -> str:
        await pause_at("on_chat_error", ctx)
        return "sorry"

    async def on_chat_response(self, result: ChatResponseResult) -> None:
        await pause_at("on_chat_response", result)

    async def on_turn_end(self, result: TurnEndResult) -> None:
        await pause_at("on_turn_end", result)
