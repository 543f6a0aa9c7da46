"""litellm itself: imported late and once, its shared connections closed by their last user."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from types import ModuleType
from typing import Any
from weakref import WeakSet

from everturn.activities.models.deadlines import CLOSE_SECONDS

_ENVIRONMENT = {
    "LITELLM_OFFLINE_MODE": "true",  # no look-ups of prices and tokenizers: they block the loop, 24 s at worst
    "LITELLM_MODE": "PRODUCTION",  # else the import loads a .env file into the environment
}
_log = logging.getLogger(__name__)
_import_lock = threading.Lock()
_users: WeakSet[object] = WeakSet()


def load_litellm() -> ModuleType:
    """litellm, imported on first use (seconds of CPU): never at start-up, best in a thread."""
    if is_loaded():
        return sys.modules["litellm"]
    with _import_lock:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        collecting = gc.isenabled()
        gc.disable()  # the import makes millions of objects that stay: collecting them costs a fifth of its time
        try:
            import litellm
        except BaseException:
            _forget_half_of_it()
            raise
        finally:
            if collecting:
                gc.enable()
        litellm.suppress_debug_info = True  # else it prints banners on stdout when a call fails
        litellm.disable_hf_tokenizer_download = True
        if "LITELLM_LOG" not in os.environ:
            logging.getLogger("LiteLLM").setLevel(logging.ERROR)  # it warns of finish reasons that we handle
        return sys.modules["litellm"]


def _forget_half_of_it() -> None:
    """After an import that failed: with some of its modules there and others not, no later one could succeed."""
    for name in [name for name in sys.modules if name == "litellm" or name.startswith("litellm.")]:
        del sys.modules[name]


def rehearse() -> None:
    """Imports litellm and plays one answer inside the process, without any connection: to be run in a thread.

    The first stream of a process costs another second of CPU, which would hold up every turn on the event loop.
    """
    load_litellm()
    try:
        asyncio.run(_play_answer())
    except Exception as error:
        _log.info("litellm's first answer could not be rehearsed: %s", error)


async def _play_answer() -> None:
    messages = [{"role": "user", "content": "hello"}]
    litellm: Any = load_litellm()
    response = await litellm.acompletion(
        model="openai/rehearsal", messages=messages, mock_response="hello", api_key="none", stream=True, num_retries=0
    )
    async for _ in response:
        pass
    await response.aclose()


def is_loaded() -> bool:
    """Whether litellm is imported, completely: another thread may be in the middle of it."""
    spec = getattr(sys.modules.get("litellm"), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def has_listeners() -> bool:
    """Whether anybody wants to be told of finished calls: a callback, litellm's cache, or its own budget."""
    litellm: Any = load_litellm()
    told = (litellm.callbacks, litellm.success_callback, litellm._async_success_callback)
    return any(told) or litellm.cache is not None or bool(litellm.max_budget)


def use_clients(user: object) -> None:
    """Notes that `user` sends requests through litellm's shared clients."""
    _users.add(user)


async def release_clients(user: object) -> None:
    """Closes litellm's shared clients if nobody else uses them; to be called on the loop that used them.

    litellm keeps closed clients in its cache, where they would fail every later request: so the cache goes too.
    """
    _users.discard(user)
    if _users or not is_loaded():
        return
    litellm: Any = load_litellm()
    async with asyncio.timeout(CLOSE_SECONDS):
        await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
