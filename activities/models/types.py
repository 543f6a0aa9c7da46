"""The seam between a model step and a provider: one request in, normalised deltas out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

from everturn.turns import JsonDict, Usage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. messages and tools have OpenAI's chat-completions format; lanes translate for other providers.

    key_env: the environment variable that holds the key, for error messages; None for the provider's usual one.
    read_timeout: seconds between two reads of the socket; the real deadlines are ours (`deadlines.py`).
    """

    model: str
    messages: list[JsonDict]
    tools: list[JsonDict] = field(default_factory=list[JsonDict])
    tool_choice: str | JsonDict | None = None
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    key_env: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop: list[str] | None = None
    seed: int | None = None
    response_format: JsonDict | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    provider_options: JsonDict = field(default_factory=dict[str, object])
    read_timeout: float = 120.0


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A fragment of a tool call. provider: opaque fields to be sent back with the call (a thought signature, say)."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    provider: JsonDict | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """One normalised piece of a model's stream; every field is optional.

    thinking: fragments of signed reasoning blocks as the provider sent them. finish: the finish reason as reported.
    """

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    thinking: list[JsonDict] | None = None
    calls: tuple[CallDelta, ...] = ()
    finish: str | None = None
    usage: Usage | None = None
    response_id: str | None = None
    model: str | None = None
    provider: JsonDict | None = None


class ModelLane(Protocol):
    """A way to reach models.

    `stream` is an async generator: closing it (`aclose`) or cancelling the task that iterates it closes the provider's
    connection at once. It raises ModelFailure and nothing else, and never retries by itself: Temporal owns retries.
    """

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]: ...
