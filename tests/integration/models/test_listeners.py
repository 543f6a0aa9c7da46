"""litellm's own callbacks: whoever has set one is told of finished calls, and nobody pays for it who has not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from everturn.activities.models.litellm_lane import LiteLLMLane
from everturn.activities.models.litellm_module import load_litellm

LIMIT = 30.0
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])


@pytest.fixture
def told(litellm_lane: LiteLLMLane) -> Iterator[asyncio.Queue[Any]]:
    """What a callback is told of finished calls."""
    from litellm.integrations.custom_logger import CustomLogger

    heard = asyncio.Queue[Any]()

    class Listener(CustomLogger):
        async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            heard.put_nowait(response_obj)

    listener = Listener()
    litellm: Any = load_litellm()
    litellm.callbacks.append(listener)
    yield heard
    for found in (litellm.callbacks, litellm.success_callback, litellm._async_success_callback):
        found[:] = [other for other in found if other is not listener]


@PROVIDERS
async def test_a_callback_hears_of_the_whole_answer(litellm_ask: Any, told: asyncio.Queue[Any], provider: str) -> None:
    attempt = await litellm_ask("text:tokens=20", provider)
    response = await asyncio.wait_for(told.get(), LIMIT)
    assert response.choices[0].message.content == attempt.done.text
    assert response.usage.completion_tokens == attempt.done.usage.output_tokens == 20


@PROVIDERS
async def test_without_one_the_answer_is_the_same(litellm_ask: Any, provider: str) -> None:
    attempt = await litellm_ask("tools:calls=2,say=Looking.", provider)
    assert attempt.done.text == "Looking."
    assert [call.tool_name for call in attempt.done.calls] == ["get_weather", "get_weather"]
    assert attempt.done.finish_reason == "tool_calls"
    assert attempt.done.usage.output_tokens > 0
    assert not attempt.records[0].client_closed, "the answer was read to its end"
