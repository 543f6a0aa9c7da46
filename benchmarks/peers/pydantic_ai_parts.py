"""What both contenders with pydantic-ai share."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.protocol import MODEL_URL
from benchmarks.peers.script import earlier_exchanges


def make_model() -> OpenAIChatModel:
    return OpenAIChatModel("fake", provider=OpenAIProvider(base_url=MODEL_URL, api_key="none"))


def past(earlier: int) -> list[ModelMessage]:
    """The thread before the user's newest message."""
    messages: list[ModelMessage] = []
    for question, answer in earlier_exchanges(earlier):
        messages += [
            ModelRequest(parts=[UserPromptPart(content=question)]),
            ModelResponse(parts=[TextPart(content=answer)]),
        ]
    return messages


def text_of(event: Any) -> str:
    """The text that a stream event brings, "" if none."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""
