"""classify_chat_error: what to do about a failed model call, where the default table does not know better."""

from __future__ import annotations

from everturn import Agent, ChatErrorContext


class Careful(Agent):
    name = "careful"
    model = "openai/gpt-4o-mini"

    async def classify_chat_error(self, error: Exception | str, ctx: ChatErrorContext) -> str | None:
        if "maintenance until" in str(error):
            return "fatal"  # by default a 503 is tried again
        return None
