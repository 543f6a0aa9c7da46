"""before_step: settings for one model call. Here: after two rounds of searching the model has to answer."""

from __future__ import annotations

from everturn import Agent, StepConfig, StepContext, tool

SEARCHES = 2


@tool(idempotent=True)
async def search(query: str) -> list[str]:
    """Search the archive."""
    return [f"a note about {query}"]


class Researcher(Agent):
    name = "researcher"
    model = "openai/gpt-4o-mini"
    tools = (search,)

    async def before_step(self, ctx: StepContext) -> StepConfig | None:
        if ctx.step < SEARCHES:
            return None
        ctx.log("no more searching", {"found": sum(len(step.tool_results) for step in ctx.steps)})
        return StepConfig(tool_choice="none")
