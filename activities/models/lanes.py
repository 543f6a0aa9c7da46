"""Which lane serves a model, under which name, at which address, with which key."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from everturn.activities.models.direct.endpoints import endpoint_of
from everturn.activities.models.direct.lane import OpenAILane
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.litellm_lane import LiteLLMLane
from everturn.activities.models.litellm_module import load_litellm
from everturn.activities.models.local_lane import LOCAL_MODEL, LocalLane
from everturn.activities.models.prices import load_prices, priced_by_litellm_only
from everturn.activities.models.providers import key_variable, provider_of, takes_plain_key
from everturn.activities.models.types import ModelLane
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.agent import Lane, Model

DEMO_MODELS = frozenset({"demo", "demo-fast"})
BUILT_IN_MODELS = DEMO_MODELS | {LOCAL_MODEL}
"""Model strings that need neither a provider nor a key."""
_DEMO_LOG_SIZE = 10  # the demo server's log is for tests; a process that runs for days needs none
_NO_KEY = "none"
"""Local servers take any key, and the client of the OpenAI API insists on one."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """Where to send a request: `lane.stream` with `model`, `api_base`, `api_key` and `key_env` in the ModelRequest."""

    lane: ModelLane
    model: str
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    key_env: str | None = None


class ModelLanes:
    """The lanes of one process. The servers of built-in models start with their first use, on the loop that asks.

    lane: for models that name none; `auto` asks a provider directly where that is possible, `litellm` never does.
    """

    def __init__(self, lane: Lane = "auto") -> None:
        self._lane: Lane = lane
        self._litellm = LiteLLMLane()
        self._direct = OpenAILane(self._litellm)
        self._local = LocalLane(self._http(None))
        self._demo: ScriptedModelServer | None = None
        self._starting = asyncio.Lock()

    async def resolve(
        self, model: str, *, api_base: str | None = None, api_key_env: str | None = None, lane: Lane | None = None
    ) -> ResolvedModel:
        """Raises ModelFailure (fatal, `authentication`) if the variable that was named for the key is not set."""
        http = self._http(lane)
        if model in DEMO_MODELS:
            return ResolvedModel(http, f"openai/{model}", await self._demo_address(), _NO_KEY)
        if model == LOCAL_MODEL:
            return ResolvedModel(self._local, model)
        variable = api_key_env or key_variable(model)
        key = os.environ.get(variable) if api_key_env or takes_plain_key(model) else None
        if not key and api_key_env:
            message = (
                f"model {model!r} takes its API key from {api_key_env}, which is not set; set it and restart the worker"
            )
            raise ModelFailure("fatal", "authentication", message)
        if not key and api_base and provider_of(model) == "openai":
            key = _NO_KEY
        return ResolvedModel(http, model, api_base, key or None, variable)

    async def warm_up(self, models: Iterable[Model]) -> None:
        """Does the slow part of the first calls of these models ahead of them, and nothing that they do not need."""
        wanted = self._wanted(models)
        needs = set(wanted.values())
        if "direct" in needs:
            await self._direct.warm_up()
            await asyncio.to_thread(load_prices)
        if "local" in needs:
            await self._load_local_model()
        if "litellm" in needs:
            await self._litellm.warm_up()
        elif _prices_need_litellm(wanted):
            await asyncio.to_thread(load_litellm)

    def preload(self, models: Iterable[Model]) -> None:
        """What `warm_up` does with imports, in this thread, which has no event loop: before processes are forked."""
        wanted = self._wanted(models)
        if "litellm" in wanted.values():
            self._litellm.preload()
        elif _prices_need_litellm(wanted):
            load_litellm()
        if "direct" in wanted.values():
            self._direct.preload()
            load_prices()

    async def close(self) -> None:
        """Ends all connections, then the servers of the built-in models."""
        await self._direct.close()
        await self._litellm.close()
        await self._local.close()
        async with self._starting:
            server, self._demo = self._demo, None
            if server is not None:
                await server.stop()

    def _wanted(self, models: Iterable[Model]) -> dict[str, str]:
        return {model.name: _need(model, self._http(model.lane) is self._direct) for model in models}

    def _http(self, lane: Lane | None) -> ModelLane:
        return self._litellm if (lane or self._lane) == "litellm" else self._direct

    async def _load_local_model(self) -> None:
        try:
            await self._local.warm_up()
        except ModelFailure as failure:
            _log.warning("%s", failure)

    async def _demo_address(self) -> str:
        async with self._starting:
            if self._demo is None:
                self._demo = await ScriptedModelServer(log_size=_DEMO_LOG_SIZE).start()
            return self._demo.base_url


def _prices_need_litellm(wanted: Mapping[str, str]) -> bool:
    return any(priced_by_litellm_only(name) for name, need in wanted.items() if need == "direct")


def _need(model: Model, direct: bool) -> str:
    """What a model's calls go through: litellm, direct, or local."""
    if model.name == LOCAL_MODEL:
        return "local"
    plain = model.name in DEMO_MODELS or endpoint_of(model.name, model.api_base) is not None
    return "direct" if direct and plain else "litellm"
