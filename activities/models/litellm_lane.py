"""The lane that reaches every provider through litellm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from everturn.activities.models.arguments import chat_arguments
from everturn.activities.models.deadlines import CLOSE_SECONDS
from everturn.activities.models.failures import failure_from
from everturn.activities.models.litellm_module import (
    has_listeners,
    is_loaded,
    load_litellm,
    rehearse,
    release_clients,
    use_clients,
)
from everturn.activities.models.prices import cost_of
from everturn.activities.models.reading import Tap, delta_of
from everturn.activities.models.types import Delta, ModelRequest
from everturn.turns import JsonDict


class LiteLLMLane:
    """Streams through litellm: one HTTP request per call, no retries, the connection closed as soon as nobody reads."""

    async def warm_up(self) -> None:
        """Does the slow first steps in a thread, so that the first turn does not pay for them."""
        await asyncio.to_thread(self.preload)

    def preload(self) -> None:
        """The same in this thread, which has no event loop."""
        rehearse()

    async def close(self) -> None:
        """Closes the connections that litellm keeps open, unless another lane of the process uses them."""
        await release_clients(self)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The model's answer. Raises ModelFailure."""
        if not is_loaded():
            await asyncio.to_thread(load_litellm)
        use_clients(self)
        response: Any = None
        try:
            response = await load_litellm().acompletion(**_arguments(request))
            tap = _tapped(response)
            async for chunk in response:
                delta = _delta(chunk, tap, request)
                yield delta
                if delta.usage is not None and _is_all(response):
                    break
        except Exception as error:
            secrets = [request.api_key, *request.headers.values()]
            raise failure_from(
                error, request.model, key_env=request.key_env, in_stream=response is not None, secrets=secrets
            ) from None
        finally:
            if response is not None:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await response.aclose()


def _tapped(response: Any) -> Tap | None:
    """Puts a tap into the wrapper's stream; None where the wrapper opens its stream only later."""
    source = getattr(response, "completion_stream", None)
    if source is None or not hasattr(source, "__aiter__"):
        return None
    tap = Tap(source)
    response.completion_stream = tap
    return tap


def _is_all(response: Any) -> bool:
    """Whether a stream that has told its usage has nothing more to do. Its wrapper tells it last, then puts the answer
    together once more and prices it for those who listen to litellm: two thirds of a short call's CPU."""
    return isinstance(response, load_litellm().CustomStreamWrapper) and not has_listeners()


def _delta(chunk: Any, tap: Tap | None, request: ModelRequest) -> Delta:
    refusal, finish = (tap.take_refusal(), tap.finish) if tap else ("", None)
    delta = delta_of(chunk, refusal=refusal, finish=finish)
    if delta.finish and tap is not None and tap.disproves_finish:
        delta = replace(delta, finish=None)
    if delta.usage:
        usage = replace(delta.usage, cost=cost_of(delta.usage, request.model, delta.model))
        delta = replace(delta, usage=usage)
    return delta


def _arguments(request: ModelRequest) -> JsonDict:
    optional: JsonDict = {"api_base": request.api_base, "extra_headers": request.headers or None}
    return {
        **{name: value for name, value in optional.items() if value is not None},
        **chat_arguments(request),
        "model": request.model,
        "messages": request.messages,
        "api_key": request.api_key,
        "stream": True,
        "stream_options": {"include_usage": True},
        "timeout": request.read_timeout,
        "stream_timeout": request.read_timeout,
        "max_retries": 0,
        "num_retries": 0,
        "drop_params": True,
    }
