"""The part of a model call that every lane words alike: OpenAI's names, and only what was set."""

from __future__ import annotations

from typing import Final

from everturn.activities.models.types import ModelRequest
from everturn.turns import JsonDict

_OWN: Final = frozenset(
    (
        "model",
        "messages",
        "stream",
        "stream_options",
        "api_key",
        "max_retries",
        "num_retries",
        "drop_params",
        "fallbacks",
    )
)
"""What provider_options cannot change: a lane makes exactly one request, with the given key, and streams it."""


def chat_arguments(request: ModelRequest) -> JsonDict:
    """Tools, limits, sampling, and the provider's own options, which win."""
    optional: JsonDict = {
        "tools": request.tools or None,
        "tool_choice": request.tool_choice if request.tools else None,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_output_tokens,
        "stop": request.stop,
        "seed": request.seed,
        "response_format": request.response_format,
    }
    options = {name: value for name, value in request.provider_options.items() if name not in _OWN}
    return {**{name: value for name, value in optional.items() if value is not None}, **options}
