"""Which failure a provider's error stands for, and that no key survives in it."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest

from everturn.activities.models.failures import ModelFailure, failure_from, failure_of_answer, missing_key
from everturn.activities.models.providers import key_variable
from everturn.activities.models.retry_after import MAX_RETRY_AFTER, retry_after
from everturn.activities.models.secrets import HIDDEN, scrub
from everturn.activities.scripted.scenarios.failures import OVERFLOWS
from everturn.hooks.overflow import says_overflow, says_rate_limit


class ProviderError(Exception):
    """Has what the exceptions of litellm and of HTTP clients have."""

    def __init__(self, text: str, status: int | None = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status_code = status
        self.litellm_response_headers = headers


class ContextWindowExceededError(ProviderError): ...


class BadRequestError(ProviderError): ...


class RateLimitError(ProviderError): ...


class APIConnectionError(ProviderError): ...


class AuthenticationError(ProviderError): ...


class MidStreamFallbackError(ProviderError):
    def __init__(self, text: str, status: int, original: BaseException | None = None) -> None:
        super().__init__(text, status)
        self.original_exception = original


MODEL = "openai/gpt-x"


def seen(error: BaseException, **options: Any) -> tuple[str, str]:
    found = failure_from(error, MODEL, **options)
    return found.kind, found.code


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ("fatal", "bad_request")),
        (401, ("fatal", "authentication")),
        (403, ("fatal", "authentication")),
        (404, ("fatal", "model_not_found")),
        (408, ("transient", "timeout")),
        (409, ("transient", "conflict")),
        (413, ("fatal", "request_too_large")),
        (422, ("fatal", "bad_request")),
        (429, ("rate_limit", "rate_limit")),
        (500, ("transient", "server_error")),
        (502, ("transient", "server_error")),
        (503, ("transient", "overloaded")),
        (529, ("transient", "overloaded")),
    ],
)
def test_a_status_decides_what_happens_next(status: int, expected: tuple[str, str]) -> None:
    assert seen(ProviderError("something", status)) == expected


def test_a_413_under_another_status_is_never_retried() -> None:
    assert seen(RateLimitError("413 Request Entity Too Large", 429)) == ("fatal", "request_too_large")
    assert seen(BadRequestError("{'type': 'request_too_large'}", 400)) == ("fatal", "request_too_large")


def test_context_overflow_comes_before_bad_request() -> None:
    assert seen(ContextWindowExceededError("no", 400)) == ("context_overflow", "context_overflow")


@pytest.mark.parametrize("wording", OVERFLOWS.values(), ids=list(OVERFLOWS))
def test_every_providers_wording_of_overflow_is_recognised(wording: str) -> None:
    text = wording.format(limit=8192, size=9000)
    assert says_overflow(text)
    assert seen(BadRequestError(text, 400)) == ("context_overflow", "context_overflow")
    assert seen(ProviderError(text, 500), in_stream=True) == ("context_overflow", "context_overflow")


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached: too many tokens per minute (TPM): Limit 30000, Requested 41000. Please reduce the length "
        "of the messages or try again later",
        "Too many tokens per day, please wait before trying again.",
        "Quota exceeded: input token count exceeds the limit of tokens per minute",
    ],
)
def test_too_many_tokens_per_time_is_a_rate_limit(text: str) -> None:
    assert says_rate_limit(text)
    assert not says_overflow(text)
    assert seen(RateLimitError(text, 429)) == ("rate_limit", "rate_limit")


def test_a_429_is_never_an_overflow() -> None:
    assert seen(RateLimitError("maximum context length", 429)) == ("rate_limit", "rate_limit")


def test_ordinary_errors_are_no_overflow() -> None:
    for text in ("invalid parameter: max_tokens is too large", "Unknown model", "temperature exceeds the maximum"):
        assert not says_overflow(text)


def test_a_status_inside_a_stream_is_not_believed() -> None:
    assert seen(BadRequestError("upstream said: internal", 400), in_stream=True) == ("transient", "stream_error")
    assert seen(MidStreamFallbackError("broken", 500)) == ("transient", "stream_error")


def test_the_cause_inside_a_broken_stream_is_found() -> None:
    limit = RateLimitError("slow down", 429)
    assert seen(MidStreamFallbackError("x", 500, limit)) == ("rate_limit", "rate_limit")
    overflow = ContextWindowExceededError("x", 400)
    assert seen(MidStreamFallbackError("x", 500, overflow)) == ("context_overflow", "context_overflow")
    assert seen(MidStreamFallbackError("Connection error.", 500)) == ("transient", "connection")
    assert seen(MidStreamFallbackError("Stream ended before a finish_reason was received", 500)) == (
        "transient",
        "incomplete_stream",
    )
    assert seen(MidStreamFallbackError("The model is repeating the same chunk = x", 500)) == (
        "transient",
        "repeated_chunk",
    )
    assert seen(MidStreamFallbackError("Overloaded", 500)) == ("transient", "overloaded")


def test_network_errors_are_transient() -> None:
    assert seen(ConnectionRefusedError(111, "Connection refused")) == ("transient", "connection")
    assert seen(ProviderError("Cannot connect to host x:1", 500)) == ("transient", "connection")
    assert seen(APIConnectionError("x")) == ("transient", "connection")
    assert seen(TimeoutError()) == ("transient", "timeout")


def test_a_refusal_by_policy_is_final() -> None:
    assert seen(BadRequestError("code: content_policy_violation", 400)) == ("fatal", "content_policy")


def test_a_bug_is_unknown_and_not_retried() -> None:
    found = failure_from(KeyError("choices"), MODEL)
    assert (found.kind, found.code, found.retryable) == ("unknown", "unknown", False)


def test_a_failure_passes_unchanged() -> None:
    given = ModelFailure("transient", "stalled", "x")
    assert failure_from(given, MODEL) is given


def test_a_bad_key_names_the_model_and_the_variable() -> None:
    found = failure_from(AuthenticationError("no", 401), "anthropic/claude-x")
    assert "'anthropic/claude-x'" in found.message
    assert "ANTHROPIC_API_KEY" in found.message
    named = failure_from(AuthenticationError("no", 401), MODEL, key_env="MY_KEY")
    assert "MY_KEY" in named.message


def test_the_providers_text_is_kept_for_the_trace_only() -> None:
    found = failure_from(ProviderError("stack of shard-7", 500), MODEL)
    assert "shard-7" not in found.message
    assert "shard-7" in found.detail


def test_keys_are_removed_from_the_detail() -> None:
    text = "Incorrect API key provided: sk-abc123def456. Header Authorization: Bearer topsecretvalue"
    found = failure_from(AuthenticationError(text, 401), MODEL, secrets=["topsecretvalue", None, ""])
    assert "sk-abc" not in found.detail
    assert "topsecret" not in found.detail
    assert HIDDEN in found.detail


@pytest.mark.parametrize(
    "text",
    [
        "key sk-proj-abcDEF123456_-x is wrong",
        "AIzaSyA1234567890abcdefghijklmnopq",
        "AKIAIOSFODNN7EXAMPLE",
        'api_key="abcdef123456"',
        "authorization: Bearer abcdef123456",
        "x-api-key: abcdef123456",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
        "Incorrect API key provided: abcdef123456.",
    ],
)
def test_whatever_looks_like_a_key_is_hidden(text: str) -> None:
    hidden = scrub(text)
    assert HIDDEN in hidden
    for secret in ("abcdef123456", "abcDEF123456", "AIzaSy", "IOSFODNN7", "eyJhbGci"):
        assert secret not in hidden


def test_scrubbing_twice_changes_nothing_and_plain_text_stays() -> None:
    once = scrub("Incorrect API key provided: sk-abc123def456.")
    assert scrub(once) == once
    plain = "The model gpt-4o failed: task-force assigned, token count 12"
    assert scrub(plain) == plain


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after-ms": "300", "retry-after": "9"}, 0.3),
        ({"retry-after": "86400"}, MAX_RETRY_AFTER),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_seconds_and_milliseconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    assert retry_after({"retry-after": formatdate(time.time() + 30, usegmt=True)}) == pytest.approx(30, abs=2)
    assert retry_after({"retry-after": formatdate(time.time() - 30, usegmt=True)}) == 0.0


def test_retry_after_reaches_the_failure() -> None:
    assert failure_from(RateLimitError("x", 429, {"retry-after": "7"}), MODEL).retry_after == 7.0
    assert failure_from(ProviderError("x", 503, {"retry-after": "3"}), MODEL).retry_after == 3.0


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("gpt-4o", "OPENAI_API_KEY"),
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("claude-x", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-x", "GEMINI_API_KEY"),
        ("hosted_vllm/m", "HOSTED_VLLM_API_KEY"),
        ("together_ai/m", "TOGETHERAI_API_KEY"),
    ],
)
def test_the_providers_variable_is_known(model: str, variable: str) -> None:
    assert key_variable(model) == variable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529, 418])
def test_an_http_answer_fails_as_an_exception_of_the_same_status_does(status: int) -> None:
    headers = {"Retry-After": "7"}
    answer = failure_of_answer(status, headers, "text", MODEL)
    raised = failure_from(ProviderError("text", status, headers), MODEL)
    for fact in ("kind", "code", "message", "status", "retry_after"):
        assert getattr(answer, fact) == getattr(raised, fact)


def test_an_http_answers_text_is_read_and_cleaned_like_an_exceptions() -> None:
    body = '{"error": {"message": "This model\'s maximum context length is 8192 tokens", "key": "topsecretvalue"}}'
    found = failure_of_answer(400, {}, body, MODEL, secrets=["topsecretvalue"])
    assert found.kind == "context_overflow"
    assert "maximum context length" in found.detail
    assert "topsecret" not in found.detail


def test_a_call_without_a_key_names_model_and_variable() -> None:
    assert "OPENAI_API_KEY" in missing_key(MODEL).message
    named = missing_key(MODEL, "MY_KEY")
    assert "MY_KEY" in named.message
    assert (named.kind, named.code, named.retryable) == ("fatal", "authentication", False)


def test_a_network_error_inside_a_stream_is_told_from_an_error_of_the_provider() -> None:
    assert seen(ConnectionResetError("x"), in_stream=True) == ("transient", "connection")
    assert seen(TimeoutError(), in_stream=True) == ("transient", "timeout")
    assert seen(ValueError("Expecting value"), in_stream=True) == ("transient", "stream_error")
