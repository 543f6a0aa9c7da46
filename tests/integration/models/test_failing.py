"""Servers that fail: one HTTP request per attempt, the right kind of failure, no key in it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from everturn.activities.models.deadlines import Deadlines
from everturn.activities.scripted.scenarios.failures import OVERFLOWS

OPENAI_LIKE = pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
ALL = pytest.mark.parametrize("provider", ["openai", "hosted_vllm", "anthropic"])


@ALL
@pytest.mark.parametrize("how", ["eof", "done", "fin", "reset"])
@pytest.mark.parametrize("inside", ["text", "call"])
async def test_a_stream_cut_short_is_a_failed_attempt(ask: Any, provider: str, how: str, inside: str) -> None:
    attempt = await ask(f"cut:how={how},inside={inside}", provider)
    assert attempt.failed.kind == "transient"
    assert attempt.failed.code in ("incomplete_stream", "connection")
    assert len(attempt.records) == 1


@ALL
async def test_the_next_attempt_at_the_same_conversation_succeeds(ask: Any, provider: str) -> None:
    request, marker = ask.request("cut:how=reset,then=text,tokens=3", provider)
    first, second = await ask.attempt(request, marker), await ask.attempt(request, marker)
    assert first.failed.retryable
    assert second.done.text == "w0001 w0002 w0003 "
    assert [r.attempt for r in second.records] == [1, 2]


@OPENAI_LIKE
async def test_a_line_that_is_no_json_never_ends_as_an_answer(ask: Any, provider: str) -> None:
    assert (await ask("odd:kind=bad_line", provider)).failed.kind == "transient"


@ALL
@pytest.mark.parametrize(
    ("scenario", "kind", "code"),
    [
        ("status:code=500", "transient", "server_error"),
        ("status:code=503", "transient", "overloaded"),
        ("status:code=529", "transient", "overloaded"),
        ("status:code=408", "transient", "timeout"),
        ("status:code=400", "fatal", "bad_request"),
        ("status:code=401", "fatal", "authentication"),
        ("status:code=403", "fatal", "authentication"),
        ("status:code=404", "fatal", "model_not_found"),
        ("status:code=413", "fatal", "request_too_large"),
        ("rate_limit", "rate_limit", "rate_limit"),
        ("tokens_per_minute", "rate_limit", "rate_limit"),
        ("drop:how=reset", "transient", "connection"),
        ("drop:how=fin", "transient", "connection"),
    ],
)
async def test_one_attempt_is_one_request_and_one_kind_of_failure(
    ask: Any, provider: str, scenario: str, kind: str, code: str
) -> None:
    attempt = await ask(scenario, provider)
    assert (attempt.failed.kind, attempt.failed.code) == (kind, code)
    assert len(attempt.records) == 1


@ALL
async def test_a_server_that_is_not_there_is_a_connection_failure(
    ask: Any, provider: str, unused_tcp_port: int
) -> None:
    attempt = await ask("text", provider, api_base=f"http://127.0.0.1:{unused_tcp_port}")
    assert (attempt.failed.kind, attempt.failed.code) == ("transient", "connection")


@ALL
async def test_retry_after_is_obeyed_in_seconds_and_milliseconds(ask: Any, provider: str) -> None:
    assert (await ask("rate_limit:retry_after=2", provider)).failed.retry_after == 2.0
    assert (await ask("rate_limit:retry_after_ms=300", provider)).failed.retry_after == 0.3


@OPENAI_LIKE
@pytest.mark.parametrize("words", list(OVERFLOWS))
async def test_a_prompt_too_long_is_recognised_before_and_inside_the_stream(
    ask: Any, provider: str, words: str
) -> None:
    before = await ask(f"overflow:provider={words}", provider)
    inside = await ask(f"overflow:provider={words},in_stream=1", provider)
    assert before.failed.kind == inside.failed.kind == "context_overflow"


async def test_a_prompt_too_long_is_recognised_through_anthropics_api(litellm_ask: Any) -> None:
    before = await litellm_ask("overflow:provider=anthropic", "anthropic")
    inside = await litellm_ask("overflow:provider=anthropic,in_stream=1", "anthropic")
    assert before.failed.kind == inside.failed.kind == "context_overflow"


async def test_a_shorter_prompt_fits(ask: Any) -> None:
    assert (await ask("overflow:limit=100000")).done.text == "fits"


@ALL
@pytest.mark.parametrize("kind", ["server_error", "overloaded_error"])
async def test_an_error_event_inside_the_stream_is_transient(ask: Any, provider: str, kind: str) -> None:
    attempt = await ask(f"stream_error:type={kind}", provider)
    assert attempt.failed.kind == "transient"
    assert len(attempt.records) == 1


@ALL
async def test_the_same_chunk_200_times_is_a_model_failure_and_the_connection_closes(
    ask: Any, provider: str, until: Any
) -> None:
    attempt = await ask("repeat:count=2000,delay_ms=1", provider)
    assert (attempt.failed.kind, attempt.failed.code) == ("transient", "repeated_chunk")
    await until(lambda: attempt.records[0].client_closed, 1)


async def test_short_chunks_that_litellm_does_not_watch_are_watched_too(ask: Any) -> None:
    assert (await ask("repeat:text=-")).failed.code == "repeated_chunk"


@ALL
@pytest.mark.parametrize(
    ("scenario", "deadlines", "code"),
    [
        ("stall:kind=nothing", Deadlines(0.3, 5, 5), "first_token_timeout"),
        ("stall:kind=silence", Deadlines(0.3, 5, 5), "first_token_timeout"),
        ("stall:kind=comments,every_ms=20", Deadlines(0.3, 5, 5), "first_token_timeout"),
        ("stall:kind=comments,every_ms=20,tokens=3", Deadlines(5, 0.3, 5), "stalled"),
        ("stall:kind=silence,tokens=3", Deadlines(5, 0.3, 5), "stalled"),
        ("stall:kind=drip,every_ms=20", Deadlines(5, 5, 0.5), "total_timeout"),
    ],
)
async def test_deadlines_hold_and_the_connection_is_closed(
    ask: Any, until: Any, provider: str, scenario: str, deadlines: Deadlines, code: str
) -> None:
    request, marker = ask.request(scenario, provider)
    began = time.monotonic()
    attempt = await ask.attempt(request, marker, deadlines)
    assert (attempt.failed.kind, attempt.failed.code) == ("transient", code)
    assert time.monotonic() - began < 4.5  # before the longer ones
    await until(lambda: attempt.records[0].client_closed, 10)


@ALL
async def test_a_wrong_key_names_model_and_variable_and_is_nowhere_itself(ask: Any, provider: str) -> None:
    attempt = await ask("key:expected=another", provider)
    failure = attempt.failed
    variable = {"openai": "OPENAI_API_KEY", "hosted_vllm": "HOSTED_VLLM_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
    assert (failure.kind, failure.code, len(attempt.records)) == ("fatal", "authentication", 1)
    assert f"{provider}/key" in failure.message
    assert variable[provider] in failure.message
    key = attempt.request.api_key
    for text in (failure.message, failure.detail, str(failure), repr(failure), repr(attempt.request)):
        assert key not in text
    assert failure.__cause__ is None
    assert failure.__suppress_context__


@ALL
async def test_the_right_key_is_sent_and_never_logged(ask: Any, provider: str) -> None:
    key = "sk-right-0123456789"
    attempt = await ask(f"key:expected={key}", provider, api_key=key)
    assert attempt.done.text == "welcome"
    assert key not in str(attempt.records[0].headers)
