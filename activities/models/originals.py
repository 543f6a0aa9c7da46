"""What a failed call is to the author's classifier: the exception that litellm raises for it, in every lane."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any, Final

from everturn.activities.models.failures import ModelFailure, ProviderAnswer
from everturn.activities.models.litellm_module import load_litellm
from everturn.activities.models.secrets import scrub

_PROVIDER: Final = "openai"
"""The format that the direct lane speaks, whoever the provider is."""
_NO_CONNECTION: Final = 500
"""The status that litellm gives a request which never got an answer."""
_UNANSWERED: Final = {"authentication": 401, "first_token_timeout": 408, "timeout": 408, "connection": _NO_CONNECTION}
"""Statuses of failures that no provider has answered, by their codes."""


async def original(failure: ModelFailure, model: str) -> Exception | str:
    """litellm's own exception, or one of the class that litellm raises for such an answer; a text for an error inside
    the stream, and for what failed before anything was sent.

    Only here the direct lane needs litellm, and imports it: seconds of CPU, once a process, in a thread.
    """
    origin = failure.origin
    if failure.in_stream:
        return failure.detail or failure.message
    if isinstance(origin, Exception) and type(origin).__module__.startswith("litellm"):
        return _scrubbed(origin, failure.secrets)
    if isinstance(origin, ProviderAnswer):
        text = scrub(_words(origin.text), failure.secrets)
        status, headers = origin.status, dict(origin.headers)
    elif failure.code in _UNANSWERED:
        status, text, headers = _UNANSWERED[failure.code], failure.detail or failure.message, {}
    else:
        return failure.detail or failure.message
    return await asyncio.to_thread(_as_litellm, model, status, text, headers)


def _scrubbed(error: Exception, secrets: Iterable[str | None]) -> Exception:
    """The exception without the keys that its text may repeat: what a hook is given ends up in logs and traces."""
    said: Any = error
    if isinstance(getattr(error, "message", None), str):
        said.message = scrub(said.message, secrets)
    error.args = tuple(scrub(arg, secrets) if isinstance(arg, str) else arg for arg in error.args)
    return error


def _words(body: str) -> str:
    """The message of an error in OpenAI's format, which is what litellm shows of it; else the whole body."""
    try:
        message: object = json.loads(body)["error"]["message"]
    except (LookupError, TypeError, ValueError):
        return body
    return message if isinstance(message, str) else body


def _as_litellm(model: str, status: int, text: str, headers: dict[str, str]) -> Exception:
    litellm: Any = load_litellm()
    from httpx import Headers
    from litellm.llms.openai.common_utils import OpenAIError

    answer: Exception = OpenAIError(status_code=status, message=text, headers=Headers(headers))
    try:
        litellm.exception_type(
            model=model.removeprefix(f"{_PROVIDER}/"), original_exception=answer, custom_llm_provider=_PROVIDER
        )
    except Exception as error:  # the function's only way to answer
        return error
    return answer
