"""Added hooks: objects of their own, which several agents can share, with limits and a failure policy."""

from __future__ import annotations

from everturn import Agent, Block, Hooks, Order, ToolCallContext, TurnContext, tool


class Curfew(Hooks):
    """No deleting by people without the role. If the check itself fails, the call is refused."""

    tools = ("delete_*",)
    timeout = 5.0
    on_error = "deny"
    order = Order(after="Greeting")

    def before_tool_call(self, ctx: ToolCallContext) -> Block | None:
        return None if "admin" in ctx.principal.roles else Block("Only admins may delete.")


class Greeting(Hooks):
    """Edits the context in place; a plain `def` runs in a thread."""

    def before_turn(self, ctx: TurnContext) -> None:
        ctx.system += f" Address the user as {ctx.principal.id or 'guest'}."


@tool
async def delete_file(name: str) -> str:
    """Delete a file."""
    return f"deleted {name}"


class Files(Agent):
    name = "files"
    model = "openai/gpt-4o-mini"
    system = "You keep files."
    tools = (delete_file,)
    hooks = (Curfew(), Greeting())
