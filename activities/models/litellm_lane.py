"""The lane that reaches every provider through litellm."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from types import ModuleType
from typing import Any

from everturn.activities.models.deadlines import CLOSE_SECONDS
from everturn.activities.models.failures import ModelFailure, failure_from
from everturn.activities.models.prices import cost_of
from everturn.activities.models.reading import Tap, delta_of
from everturn.activities.models.types import Delta, ModelRequest
from everturn.turns import JsonDict

_ENVIRONMENT = {
    "LITELLM_OFFLINE_MODE": "true",  # no look-ups of prices and tokenizers: they block the loop, 24 s at worst
    "LITELLM_MODE": "PRODUCTION",  # else the import loads a .env file into the environment
}
_OWN_ARGUMENTS = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "api_key",
        "max_retries",
        "num_retries",
        "drop_params",
        "fallbacks",
    }
)
"""What provider_options cannot change: a lane makes exactly one request, to the given address, and streams it."""
_import_lock = threading.Lock()


def load_litellm() -> ModuleType:
    """litellm, imported on first use (seconds of CPU): never at start-up, best in a thread."""
    loaded = sys.modules.get("litellm")
    if loaded is not None and getattr(loaded, "acompletion", None) is not None:
        return loaded
    with _import_lock:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        collecting = gc.isenabled()
        gc.disable()  # the import makes millions of objects that stay: collecting them costs a fifth of its time
        try:
            import litellm
        finally:
            if collecting:
                gc.enable()
        litellm.suppress_debug_info = True  # else it prints banners on stdout when a call fails
        litellm.disable_hf_tokenizer_download = True
        if "LITELLM_LOG" not in os.environ:
            logging.getLogger("LiteLLM").setLevel(logging.ERROR)  # it warns of finish reasons that we handle
        return litellm


class LiteLLMLane:
    """Streams through litellm: one HTTP request per call, no retries, the connection closed as soon as nobody reads."""

    async def warm_up(self) -> None:
        """Imports litellm in a thread, so that the first turn does not pay for it."""
        await asyncio.to_thread(load_litellm)

    async def close(self) -> None:
        """Closes the connections that litellm keeps open; to be called on the loop that used them."""
        if "litellm" in sys.modules:
            async with asyncio.timeout(CLOSE_SECONDS):
                await load_litellm().close_litellm_async_clients()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The model's answer. Raises ModelFailure."""
        if "litellm" not in sys.modules:
            await self.warm_up()
        response: Any = None
        try:
            response = await load_litellm().acompletion(**_arguments(request))
            tap = _tapped(response)
            async for chunk in response:
                yield _delta(chunk, tap, request)
            rest = tap.take_refusal() if tap else ""
            if rest:
                yield Delta(refusal=rest)
        except ModelFailure:
            raise
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
    optional: JsonDict = {
        "tools": request.tools or None,
        "tool_choice": request.tool_choice if request.tools else None,
        "api_base": request.api_base,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_output_tokens,
        "stop": request.stop,
        "seed": request.seed,
        "response_format": request.response_format,
        "extra_headers": request.headers or None,
    }
    options = {name: value for name, value in request.provider_options.items() if name not in _OWN_ARGUMENTS}
    return {
        **{name: value for name, value in optional.items() if value is not None},
        **options,
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
