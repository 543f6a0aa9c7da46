"""The agents of the chaos tests' workers. What they do to the world goes into a file, one line for each effect."""

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
    ToolContext,
    TurnConfig,
    TurnContext,
    TurnEndResult,
    TurnError,
    tool,
)
from everturn.hooks.session import Session
from tests.chaos.faults import Striker

EFFECTS = Path(os.environ["CHAOS_EFFECTS"])
TOOL_SECONDS = float(os.environ.get("CHAOS_TOOL_SECONDS", "0"))
MODEL = Model("openai/scripted", api_base=os.environ["CHAOS_MODEL_URL"])
STRIKER = Striker()


def note(kind: str, key: str) -> None:
    with EFFECTS.open("a") as file:
        file.write(f"{kind} {key}\n")


async def effect(name: str, ctx: ToolContext) -> str:
    """Takes effect, then takes a while: a worker that dies meanwhile has done it and could not say so."""
    note(name, ctx.idempotency_key)
    await STRIKER.visit_in_loop(f"tool:{name}", "inside")
    await asyncio.sleep(TOOL_SECONDS)
    return f"{name} done"


@tool
async def charge(amount: int, ctx: ToolContext) -> str:
    """Charges a card; running it twice would charge twice."""
    return await effect("charge", ctx)


@tool(idempotent=True)
async def remember(text: str, ctx: ToolContext) -> str:
    """Stores a note; running it twice is the same as once."""
    return await effect("remember", ctx)


@tool(needs_approval=True)
async def transfer(amount: int, ctx: ToolContext) -> str:
    """Moves money, once somebody has agreed."""
    return await effect("transfer", ctx)


@tool(client=True)
def locate() -> str:
    """Where the user is; the front end knows."""


@tool
async def deduct(amount: int) -> str:
    """Takes something away; without a context, so that it comes to be known as quick."""
    return await effect_of_quick("deduct", amount)


@tool(idempotent=True)
async def jot(amount: int) -> str:
    """Notes something; the same, and it may be repeated."""
    return await effect_of_quick("jot", amount)


async def effect_of_quick(name: str, amount: int) -> str:
    note(name, str(amount))
    if amount:
        await STRIKER.visit_in_loop(f"tool:{name}", "inside")
    return f"{name} done"


class Plain(Agent):
    """No hooks. The scenario rides in the message."""

    name = "plain"
    model = MODEL
    tools = (charge, remember)


class Asking(Agent):
    """Its tools wait for somebody."""

    name = "asking"
    model = MODEL
    tools = (transfer, locate)


class Swift(Agent):
    """Its tools end at once. What they are called with is part of the message."""

    name = "swift"
    model = MODEL
    tools = (deduct, jot)


class Folding(Agent):
    """Its threads are compacted when the provider finds them too long."""

    name = "folding"
    model = MODEL

    def configure_session(self, session: Session) -> Session:
        return session.context_overflow(reactive=True)


async def visit(point: str, ctx: Any) -> None:
    """One run of a hook, by its key; a place to be struck in."""
    note(f"hook:{point}", ctx.idempotency_key)
    await STRIKER.visit_in_loop(f"hook:{point}", "inside")


class Watched(Agent):
    """Every point is implemented, and decides or writes something where it can."""

    name = "watched"
    model = MODEL
    tools = (charge, remember)

    async def before_turn(self, ctx: TurnContext) -> TurnConfig:
        await visit("before_turn", ctx)
        return TurnConfig(max_steps=4)

    async def before_step(self, ctx: StepContext) -> None:
        ctx.state["step"] = ctx.step
        await visit("before_step", ctx)

    async def before_tool_call(self, ctx: ToolCallContext) -> None:
        await visit("before_tool_call", ctx)

    async def after_tool_call(self, ctx: ToolCallResultContext) -> None:
        await visit("after_tool_call", ctx)

    async def on_step_finish(self, ctx: StepResult) -> None:
        await visit("on_step_finish", ctx)

    async def on_chat_error(self, error: TurnError, ctx: ChatErrorContext) -> str:
        await visit("on_chat_error", ctx)
        return "sorry"

    async def on_chat_response(self, result: ChatResponseResult) -> None:
        await visit("on_chat_response", result)

    async def on_turn_end(self, result: TurnEndResult) -> None:
        await visit("on_turn_end", result)


AGENTS = [Plain(), Asking(), Folding(), Swift(), Watched()]
