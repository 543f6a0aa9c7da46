"""on_chat_response: the answer is stored and the thread is free again. Hooks run at least once: use the key."""

from __future__ import annotations

from everturn import Agent, ChatResponseResult

OUTBOX: dict[str, str] = {}
"""Stands for a mail service that takes an idempotency key."""


class Mailer(Agent):
    name = "mailer"
    model = "openai/gpt-4o-mini"

    async def on_chat_response(self, result: ChatResponseResult) -> None:
        if result.status == "completed":
            OUTBOX[result.idempotency_key] = result.message.text
