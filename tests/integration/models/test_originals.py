"""What an author's classifier is given: litellm's exception in both lanes, and a text for an error in the stream."""

from __future__ import annotations

import pytest

from everturn.activities.models.deadlines import Deadlines
from everturn.activities.models.failures import missing_key
from everturn.activities.models.originals import original
from tests.integration.models.conftest import Ask

STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
FAILURES = (*(f"status:code={code}" for code in STATUSES), "overflow:provider=openai", "drop:how=reset")


async def told(ask: Ask, scenario: str) -> Exception | str:
    attempt = await ask(scenario)
    return await original(attempt.failed, attempt.request.model)


@pytest.mark.parametrize("scenario", FAILURES)
async def test_both_lanes_tell_of_a_failure_by_the_same_exception_of_litellm(
    litellm_ask: Ask, direct_ask: Ask, scenario: str
) -> None:
    theirs, ours = await told(litellm_ask, scenario), await told(direct_ask, scenario)
    assert isinstance(theirs, Exception)
    assert isinstance(ours, Exception)
    assert type(theirs).__module__.startswith("litellm")
    assert type(ours) is type(theirs)
    assert getattr(ours, "status_code", None) == getattr(theirs, "status_code", None)
    if not scenario.startswith("drop"):
        assert str(ours) == str(theirs)


@pytest.mark.parametrize("scenario", ["stream_error:message=Boiler_off", "overflow:provider=openai,in_stream=1"])
async def test_both_lanes_tell_of_an_error_in_the_stream_by_the_providers_words(
    litellm_ask: Ask, direct_ask: Ask, scenario: str
) -> None:
    words = "Boiler_off" if "Boiler" in scenario else "maximum context length"
    for ask in (litellm_ask, direct_ask):
        error = await told(ask, scenario)
        assert isinstance(error, str)
        assert words in error


async def test_retry_after_is_among_the_exceptions_headers_in_both_lanes(ask: Ask) -> None:
    error = await told(ask, "rate_limit:retry_after=2")
    assert getattr(error, "litellm_response_headers", {}).get("retry-after") == "2"


async def test_a_model_that_does_not_begin_is_litellms_timeout_and_one_that_stops_a_text(ask: Ask) -> None:
    request, marker = ask.request("stall:tokens=0")
    silent = await ask.attempt(request, marker, Deadlines(0.2, 10, 20))
    assert type(await original(silent.failed, "openai/any")).__name__ == "Timeout"
    request, marker = ask.request("stall:tokens=2")
    stopped = await ask.attempt(request, marker, Deadlines(10, 0.2, 20))
    assert await original(stopped.failed, "openai/any") == "the model's stream stopped for 0.2 s"


async def test_a_call_without_a_key_is_litellms_authentication_error() -> None:
    error = await original(missing_key("openai/any"), "openai/any")
    assert type(error).__name__ == "AuthenticationError"
    assert "OPENAI_API_KEY" in str(error)
