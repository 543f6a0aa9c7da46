"""The agents of workers that are killed while a hook runs: one for each point. Settings come from the environment."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from everturn import Agent, Model, tool
from everturn.hooks.points import HOOK_POINTS
from everturn.hooks.session import Session
from everturn.workflows import timeouts

NOTES = Path(os.environ["KILLED_NOTES"])
PARKS = os.environ["KILLED_PARKS"]
"""Where this worker stays until it is killed: "hooks", "session" or "nothing"."""

# Two lost workers instead of 25: a step is given up for its crashes as soon as that.
vars(timeouts)["STEP_RETRY"] = replace(timeouts.STEP_RETRY, maximum_attempts=2)


def note(line: str) -> None:
    with NOTES.open("a") as file:
        file.write(f"{line}\n")


async def park(kind: str) -> None:
    if kind == PARKS:
        await asyncio.Event().wait()


@tool
async def charge(amount: int) -> str:
    """Charges a card; twice would be wrong."""
    note(f"charge {amount}")
    return f"charged {amount}"


def noting(point: str) -> Callable[..., Awaitable[None]]:
    async def method(self: object, *arguments: Any) -> None:
        note(f"{point} {arguments[-1].idempotency_key}")
        await park("hooks")

    return method


class Base(Agent):
    """Scenario by message."""

    model = Model("openai/scripted", api_base=os.environ["KILLED_MODEL_URL"])
    tools = (charge,)


class Unlucky(Base):
    """Every worker dies under its step."""

    name = "unlucky"

    async def on_chat_error(self, error: Any, ctx: Any) -> str:
        note(f"{ctx.stage} {ctx.messages_persisted} {error.type}")
        return "Sorry."


class Configured(Base):
    """Asks for its session when a worker starts."""

    name = "configured"

    async def configure_session(self, session: Session) -> Session:
        note("configure_session")
        await park("session")
        return session


def at(point: str) -> Agent:
    made: Agent = type(point, (Base,), {"name": point, point: noting(point)})()
    return made


globals().update({f"at_{point}": at(point) for point in HOOK_POINTS})
