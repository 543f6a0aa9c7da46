"""A model request as HTTP: what litellm would send for it, and when only litellm can."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any, Final, cast

from pydantic_core import PydanticSerializationError, to_json

from everturn.activities.models.arguments import chat_arguments
from everturn.activities.models.direct.endpoints import Endpoint, bare_name
from everturn.activities.models.types import ModelRequest
from everturn.turns import JsonDict

_LITELLM_WORDS: Final = frozenset(
    (
        "thinking",
        "reasoning_effort",
        "web_search_options",
        "extra_headers",
        "timeout",
        "stream_timeout",
        "base_url",
        "api_version",
        "custom_llm_provider",
        "allowed_openai_params",
        "additional_drop_params",
        "cache_control_injection_points",
        "mock_response",
    )
)
"""Provider options that litellm translates for each provider, or that speak to litellm itself."""
_TEXT: Final[frozenset[str]] = frozenset()
_TEXT_AND_PICTURES: Final = frozenset(("text", "image_url"))
"""Parts that a message may have if it is to be sent as it is; files and sound are translated. Mere text is no parts."""
_SCHEMA_EXTRAS: Final = frozenset(("additionalProperties", "strict"))
_USER_AGENT: Final = f"everturn/{version('everturn')}"


def needs_litellm(request: ModelRequest, endpoint: Endpoint) -> bool:
    """Whether this one request asks for a translation that is litellm's."""
    if not endpoint.schemas and request.response_format is not None:
        return True
    if not _LITELLM_WORDS.isdisjoint(request.provider_options):
        return True
    plain = _TEXT_AND_PICTURES if endpoint.pictures else _TEXT
    return not all(_has_only(plain, message.get("content")) for message in request.messages)


def request_url(base: str) -> str:
    """The address of chat completions below a base address."""
    return f"{base.rstrip('/').removesuffix('/chat/completions')}/chat/completions"


def request_headers(request: ModelRequest) -> dict[str, str]:
    """Lower-case names, so that the caller's replace ours. Nothing compressed: compression holds chunks back."""
    headers = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": _USER_AGENT}
    if request.api_key:
        headers["authorization"] = f"Bearer {request.api_key}"
    return headers | {name.lower(): value for name, value in request.headers.items()}


def request_body(request: ModelRequest, endpoint: Endpoint) -> bytes:
    """The JSON of a streamed chat completion."""
    arguments = chat_arguments(request)
    extra = cast(JsonDict, arguments.pop("extra_body", None) or {})
    if endpoint.plain_tools and "tools" in arguments:
        arguments["tools"] = _without_extras(arguments["tools"])
    body = {
        **({"usage": {"include": True}} if endpoint.prices_calls else {}),
        **arguments,
        **extra,
        "model": bare_name(request.model),
        "messages": [_without_nulls(message) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    try:
        return to_json(body)
    except PydanticSerializationError:  # half a surrogate pair, say, which only the escaped form can carry
        return json.dumps(body, separators=(",", ":")).encode()


def _has_only(kinds: frozenset[str], content: object) -> bool:
    if not isinstance(content, list):
        return True
    return all(part.get("type") in kinds for part in cast(list[JsonDict], content))


def _without_nulls(message: JsonDict) -> JsonDict:
    """Some providers refuse null where a field may be left out."""
    return {name: value for name, value in message.items() if value is not None}


def _without_extras(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast(JsonDict, value)
        return {name: _without_extras(inner) for name, inner in fields.items() if name not in _SCHEMA_EXTRAS}
    return [_without_extras(inner) for inner in cast(list[object], value)] if isinstance(value, list) else value
