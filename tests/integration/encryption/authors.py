"""Agents whose turns pass through everything that Temporal can be told, each with words of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel

from everturn import Agent, Ask, Block, Hooks, ToolContext, TurnConfig, TurnError, tool
from everturn.hooks.session import Session
from tests.integration.encryption.canaries import Canaries


class Verdict(BaseModel):
    """A structured answer."""

    verdict: str


def make_agents(word: Canaries) -> list[Agent]:  # noqa: C901 - many small functions that share the words
    @tool
    async def lookup(note: str) -> dict[str, str]:
        """Looks something up."""
        return {"found": word("tool_output")}

    @tool
    async def broken(note: str) -> str:
        """Fails."""
        raise RuntimeError(f"broken: {word('tool_error')}")

    @tool
    async def slow(note: str, ctx: ToolContext) -> str:
        """Runs until it is stopped."""
        ctx.progress(word("progress"))
        await asyncio.wait_for(ctx.cancelled.wait(), 30)
        return word("late_output")

    @tool
    async def pay(note: str) -> str:
        """Pays; a hook asks first."""
        return word("paid_output")

    @tool(client=True)
    def locate(note: str) -> str:
        """Runs in the front end."""
        raise AssertionError("a client tool has no body")

    class Watching(Hooks):
        def before_turn(self, ctx: Any) -> Any:
            ctx.log(word("hook_log"), {"data": word("hook_log_data")})
            ctx.state["seen"] = word("hook_state")
            said = str(ctx.messages[-1])
            if "blocked:" in said:
                return Block(word("block_reason"))
            if "structured:" in said:
                return TurnConfig(output=Verdict, metadata={"why": word("turn_metadata")})
            return None

        def before_tool_call(self, ctx: Any) -> Any:
            return Ask(word("ask_reason")) if ctx.tool_name == "pay" else None

        def classify_chat_error(self, error: Exception | str, ctx: Any) -> Any:
            return "fatal" if isinstance(error, str) else None

        def on_chat_error(self, error: TurnError, ctx: Any) -> Any:
            return TurnError("shown", f"{error.type}: {word('shown_error')}")

        def on_turn_end(self, result: Any) -> None:
            result.log(word("end_log"))

    class Clerk(Agent):
        name = "clerk"
        model = "demo"
        system = f"You are a clerk. {word('system_prompt')}"
        tools = (lookup, broken, slow, pay, locate)
        hooks = (Watching(),)

    class Raising(Agent):
        name = "raising"
        model = "demo"

        def before_turn(self, ctx: Any) -> Any:
            raise ValueError(word("hook_error"))

        def on_turn_end(self, result: Any) -> None:
            raise ValueError(word("end_error"))

    class Forgetful(Agent):
        name = "forgetful"
        model = "demo"

        def configure_session(self, session: Session) -> Session:
            return session.compact_after(200)

    return [Clerk(), Raising(), Forgetful()]
