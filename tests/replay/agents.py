"""The agents whose turns are recorded: between them they have every kind of tool, hook and limit."""

from __future__ import annotations

import asyncio
from typing import Any

from everturn import (
    Agent,
    Ask,
    Block,
    ChatErrorContext,
    Hooks,
    Model,
    StepConfig,
    Tool,
    TurnConfig,
    TurnError,
    tool,
)
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.contexts import StepFacts
from everturn.hooks.session import Session
from tests.integration.turns.lab import make_agent

CLIENTS: dict[str, Any] = {}
"""The client that an agent's hook cancels with, by the name `chat`."""


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
async def fail(reason: str) -> str:
    """Always fails."""
    raise RuntimeError(reason)


@tool
async def wait_long() -> str:
    """Waits until it is stopped."""
    await asyncio.Event().wait()
    return "never"


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


class Everywhere(Agent):
    """Implements every hook point."""

    async def before_turn(self, ctx: Any) -> TurnConfig:
        return TurnConfig(temperature=0.5)

    async def before_step(self, ctx: Any) -> StepConfig:
        return StepConfig()

    async def before_tool_call(self, ctx: Any) -> None:
        ctx.log("before a tool")

    async def after_tool_call(self, ctx: Any) -> None:
        ctx.log("after a tool")

    async def on_step_finish(self, ctx: Any) -> None:
        ctx.log("step")

    async def on_chat_error(self, error: Any, ctx: Any) -> Any:
        return error

    async def on_chat_response(self, result: Any) -> None:
        result.log("response")

    async def on_turn_end(self, result: Any) -> None:
        result.log("end")


class Doorkeeper(Hooks):
    """Blocks every turn."""

    async def before_turn(self, ctx: Any) -> Block:
        return Block("not today")


@tool(needs_approval=True)
async def refund(amount: int) -> str:
    """Refunds."""
    return f"refunded {amount}"


@tool(client=True)
def locate() -> str:
    """Where the user is; the front end knows."""
    raise AssertionError("a client tool has no body")


@tool(retries=1)
async def shaky(name: str) -> str:
    """Fails at first."""
    if name not in SHAKEN:
        SHAKEN.add(name)
        raise RuntimeError("not yet")
    return "steady"


SHAKEN: set[str] = set()


class Impatient(Hooks):
    """Asks a person before each tool call, for a moment."""

    async def before_tool_call(self, ctx: Any) -> Ask:
        return Ask("is this wanted?", timeout=0.2)


class Guard(Hooks):
    """Lets no tool run."""

    async def before_tool_call(self, ctx: Any) -> Block:
        return Block("not this one")


class Form(Hooks):
    """Wants a number for an answer."""

    async def before_turn(self, ctx: Any) -> TurnConfig:
        return TurnConfig(output={"type": "integer"})


def after_two(steps: list[StepFacts]) -> bool:
    """A stop condition of the author's own."""
    return len(steps) == 2


class Brief(Hooks):
    """Ends the turn after two steps."""

    async def before_turn(self, ctx: Any) -> TurnConfig:
        return TurnConfig(stop_when=[after_two])


class Broken(Agent):
    """Its own hook fails the turn."""

    async def before_turn(self, ctx: Any) -> None:
        raise RuntimeError("the hook is broken")


class Slow(Agent):
    """Hangs before each step."""

    async def before_step(self, ctx: Any) -> None:
        await asyncio.Event().wait()


class Regretful(Agent):
    """Stops the turn when it has failed."""

    async def on_chat_error(self, error: TurnError, ctx: ChatErrorContext) -> None:
        await CLIENTS["chat"].cancel_chat(ctx.request_id)


class Ahead(Agent):
    """Compacts its threads before they are too long."""

    def configure_session(self, session: Session) -> Session:
        return session.context_overflow(max_input_tokens=1500)


def agents(server: ScriptedModelServer) -> list[Agent]:
    every: list[Tool] = [add, fail, wait_long, pay, refund, locate, shaky]
    following = [Model("openai/say:text=second", api_base=server.base_url)]
    refusing = Model("openai/status:code=401", api_base=server.base_url, fallbacks=following)
    return [
        make_agent(server, tools=every),
        make_agent(server, name="everywhere", base=Everywhere, tools=every),
        make_agent(server, name="doorkeeper", hooks=[Doorkeeper()]),
        make_agent(server, name="impatient", hooks=[Impatient()], tools=every),
        make_agent(server, name="guarded", hooks=[Guard()], tools=every),
        make_agent(server, name="form", hooks=[Form()]),
        make_agent(server, name="brief", hooks=[Brief()], tools=every),
        make_agent(server, name="short", tools=every, max_steps=1),
        make_agent(server, name="broken", base=Broken),
        make_agent(server, name="slow", base=Slow),
        make_agent(server, name="regretful", base=Regretful),
        make_agent(server, name="ahead", base=Ahead),
        make_agent(server, name="following", model=refusing),
    ]
