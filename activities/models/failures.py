"""How a model step can fail, in our words, and the table that translates a provider's errors into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from everturn.activities.models.providers import key_variable
from everturn.activities.models.retry_after import retry_after
from everturn.activities.models.secrets import scrub
from everturn.hooks.overflow import says_overflow, says_rate_limit
from everturn.turns import Classification

FailureKind = Classification

MAX_DETAIL = 4_000
"""Characters of a provider's text that are kept for the trace."""
MAX_TEXT = 64 * 1024
"""Characters of it that are searched for what it says."""


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """An HTTP answer with an error status."""

    status: int
    headers: Mapping[str, str]
    text: str


class ModelFailure(Exception):
    """A model call failed.

    kind: what to do about it. code: a stable word for clients and tests (`rate_limit`, `authentication`,
    `incomplete_stream`, …). message: one sentence that clients may see. detail: the provider's own text, for the trace
    only. retry_after: seconds that the provider asked to wait. in_stream: the answer had begun. origin: what the
    failure was made of, for the author's classifier alone: it is not scrubbed, so it is never chained or stored.
    secrets: what has to be removed from it before anybody sees it.
    """

    def __init__(
        self,
        kind: FailureKind,
        code: str,
        message: str,
        *,
        detail: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        in_stream: bool = False,
        origin: BaseException | ProviderAnswer | None = None,
        secrets: Iterable[str | None] = (),
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.code, self.message = code, message
        self.detail, self.status, self.retry_after = detail, status, retry_after
        self.in_stream, self.origin, self.secrets = in_stream, origin, tuple(secrets)

    @property
    def retryable(self) -> bool:
        return self.kind in ("rate_limit", "transient")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of an error. classes: names of the exception's classes. in_stream: the stream had begun."""

    model: str
    key_variable: str
    classes: frozenset[str]
    text: str
    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    in_stream: bool = False


_Row = tuple[FailureKind, str, str]

_BY_STATUS: dict[int, _Row] = {
    401: (
        "fatal",
        "authentication",
        "the provider refused the API key for model {model!r}; set {variable} to a valid key",
    ),
    403: (
        "fatal",
        "authentication",
        "the API key for model {model!r} may not use it; check the rights of the key in {variable}",
    ),
    404: ("fatal", "model_not_found", "the provider does not know the model {model!r}; check its name and address"),
    408: ("transient", "timeout", "the provider of model {model!r} timed out"),
    409: ("transient", "conflict", "the provider of model {model!r} reported a conflict with another request"),
    413: (
        "fatal",
        "request_too_large",
        "the request to model {model!r} is larger than its provider takes; shorten it",
    ),
    429: ("rate_limit", "rate_limit", "the provider of model {model!r} limits the rate of requests"),
    503: ("transient", "overloaded", "the provider of model {model!r} is overloaded"),
    529: ("transient", "overloaded", "the provider of model {model!r} is overloaded"),
}
_OVERFLOW: _Row = ("context_overflow", "context_overflow", "the conversation is too long for model {model!r}")
_POLICY: _Row = ("fatal", "content_policy", "the provider of model {model!r} refuses this content")
_REPEATED: _Row = ("transient", "repeated_chunk", "model {model!r} repeated the same piece of text again and again")
_INCOMPLETE: _Row = (
    "transient",
    "incomplete_stream",
    "the stream of model {model!r} ended before its answer was complete",
)
_UNREACHABLE: _Row = ("transient", "connection", "the connection to the provider of model {model!r} failed")
_STREAM_ERROR: _Row = (
    "transient",
    "stream_error",
    "the provider of model {model!r} reported an error in its stream",
)
_BAD_REQUEST: _Row = ("fatal", "bad_request", "the provider of model {model!r} refused the request as invalid")
_REDIRECT: _Row = (
    "fatal",
    "redirect",
    "the provider of model {model!r} sends its callers to another address; set the model's api_base to that one",
)
_SERVER_ERROR: _Row = ("transient", "server_error", "the provider of model {model!r} had an internal error")
_UNKNOWN: _Row = ("unknown", "unknown", "the call of model {model!r} failed in an unexpected way")

_NO_KEY: _Row = ("fatal", "authentication", "model {model!r} needs an API key; set {variable}")
_NO_PROVIDER: _Row = (
    "fatal",
    "model_not_found",
    "no provider is known for model {model!r}; use a name with a provider, such as openai/gpt-4o-mini",
)

_BY_WORDS: tuple[tuple[re.Pattern[str], _Row], ...] = tuple(
    (re.compile(words, re.IGNORECASE), row)
    for words, row in (
        ("repeating the same chunk", _REPEATED),
        ("ended before a finish_reason", _INCOMPLETE),
        ("content_policy_violation", _POLICY),
        ("request_too_large|(?:payload|request entity|content) too large", _BY_STATUS[413]),
        ("missing credentials|missing [a-z_ ]{0,30}api[ _]key", _NO_KEY),
        ("llm provider not provided", _NO_PROVIDER),
    )
)
"""What an error's text proves, whatever status it carries: litellm invents some of them."""

_CONNECTION_WORDS = (
    "connection error",
    "cannot connect",
    "connection reset",
    "connection refused",
    "server disconnected",
    "payload is not completed",
    "incomplete chunked read",
    "connection closed",
    "broken pipe",
)


def failure_from(
    error: BaseException,
    model: str,
    *,
    key_env: str | None = None,
    in_stream: bool = False,
    secrets: Iterable[str | None] = (),
) -> ModelFailure:
    """The failure that an exception of litellm, of an HTTP client or of the network stands for.

    key_env: the variable that holds the key, if it is not the provider's usual one. in_stream: the answer had begun; a
    status inside a stream is often invented, so what the text says counts. secrets: values to remove from `detail`.
    """
    if isinstance(error, ModelFailure):
        return error
    facts = _facts(error, model, key_env or key_variable(model), in_stream)
    return _failure(_row(facts), facts, f"{type(error).__name__}: {facts.text}", secrets, error)


def failure_of_answer(
    status: int,
    headers: Mapping[str, str],
    body: str,
    model: str,
    *,
    key_env: str | None = None,
    secrets: Iterable[str | None] = (),
) -> ModelFailure:
    """The failure that an HTTP answer with an error status stands for: the same table, without any exception."""
    facts = _Facts(model, key_env or key_variable(model), frozenset(), body, status, headers)
    answer = ProviderAnswer(status, headers, body)
    return _failure(_row(facts), facts, f"HTTP {status}: {body}", secrets, answer)


def missing_key(model: str, key_env: str | None = None) -> ModelFailure:
    """The failure of a call that has no key and needs one."""
    facts = _Facts(model, key_env or key_variable(model), frozenset(), "", None)
    return _failure(_NO_KEY, facts, "", ())


def _failure(
    row: _Row,
    facts: _Facts,
    detail: str,
    secrets: Iterable[str | None],
    origin: BaseException | ProviderAnswer | None = None,
) -> ModelFailure:
    kind, code, message = row
    return ModelFailure(
        kind,
        code,
        message.format(model=facts.model, variable=facts.key_variable),
        detail=scrub(detail, secrets)[:MAX_DETAIL],
        status=facts.status,
        retry_after=retry_after(facts.headers) if kind in ("rate_limit", "transient") else None,
        in_stream=facts.in_stream,
        origin=origin,
        secrets=secrets,
    )


def _facts(error: BaseException, model: str, variable: str, in_stream: bool) -> _Facts:
    classes = frozenset(cls.__name__ for cls in type(error).__mro__)
    original: object = getattr(error, "original_exception", None)
    if "MidStreamFallbackError" in classes:
        in_stream = True
        if isinstance(original, BaseException):
            classes |= {cls.__name__ for cls in type(original).__mro__}
    status = getattr(error, "status_code", None)
    return _Facts(
        model=model,
        key_variable=variable,
        classes=classes,
        text=str(error)[:MAX_TEXT],
        status=status if isinstance(status, int) else None,
        headers=_headers(error),
        in_stream=in_stream,
    )


def _headers(error: BaseException) -> Mapping[str, str]:
    response: object = getattr(error, "response", None)
    for found in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        if found:
            return {str(k): str(v) for k, v in dict(cast(Mapping[Any, Any], found)).items()}
    return {}


def _row(facts: _Facts) -> _Row:
    """The line of the table: first what the text proves, then the status, then the kind of exception."""
    by_text = _by_text(facts)
    if by_text is not None:
        return by_text
    if facts.in_stream:
        return _in_stream(facts)
    return _by_status(facts) or _by_class(facts)


def _by_text(facts: _Facts) -> _Row | None:
    if facts.status != 429 and ("ContextWindowExceededError" in facts.classes or says_overflow(facts.text)):
        return _OVERFLOW
    if "ContentPolicyViolationError" in facts.classes:
        return _POLICY
    return next((row for words, row in _BY_WORDS if words.search(facts.text)), None)


def _in_stream(facts: _Facts) -> _Row:
    if facts.status == 429 or "RateLimitError" in facts.classes or says_rate_limit(facts.text):
        return _BY_STATUS[429]
    if facts.status == 408 or facts.classes & {"Timeout", "TimeoutError"}:
        return _BY_STATUS[408]
    if "AuthenticationError" in facts.classes:
        return _BY_STATUS[401]
    if "overloaded" in facts.text.lower():
        return _BY_STATUS[529]
    broken = facts.classes & {"ClientError", "OSError"} or _speaks_of_connection(facts)
    return _UNREACHABLE if broken else _STREAM_ERROR


def _by_status(facts: _Facts) -> _Row | None:
    status = facts.status
    if status is None:
        return None
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 500:
        return _REDIRECT if status < 400 else _BAD_REQUEST
    if status >= 500:
        if "overloaded" in facts.text.lower():
            return _BY_STATUS[529]
        return _UNREACHABLE if _speaks_of_connection(facts) else _SERVER_ERROR
    return None


def _by_class(facts: _Facts) -> _Row:
    if facts.classes & {"Timeout", "TimeoutError", "TimeoutException", "APITimeoutError"}:
        return _BY_STATUS[408]
    if facts.classes & {"APIConnectionError", "OSError", "TransportError", "ClientError"} or _speaks_of_connection(
        facts
    ):
        return _UNREACHABLE
    return _BAD_REQUEST if "BadRequestError" in facts.classes else _UNKNOWN


def _speaks_of_connection(facts: _Facts) -> bool:
    lower = facts.text.lower()
    return any(words in lower for words in _CONNECTION_WORDS)
