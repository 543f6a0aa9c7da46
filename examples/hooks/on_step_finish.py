"""on_step_finish: the full record of a step, with its tool results, tokens and cost."""

from __future__ import annotations

from everturn import Agent, StepResult


class Metered(Agent):
    name = "metered"
    model = "openai/gpt-4o-mini"

    async def on_step_finish(self, ctx: StepResult) -> None:
        ctx.log(
            f"step {ctx.step}: {ctx.finish_reason}",
            {"tokens": ctx.usage.total_tokens, "cost": ctx.usage.cost, "calls": len(ctx.tool_calls)},
        )
