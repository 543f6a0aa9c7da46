"""Whether a worker is alive and whether it is ready, as its health endpoint tells."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from everturn.connection import check_namespace
from everturn.errors import Unavailable
from everturn.turns import JsonDict
from everturn.worker.plugin import EverturnPlugin

CHECK_TIMEOUT: Final = 2.0
"""Seconds that a service has to answer; whoever asks us does not wait much longer."""
REMEMBER: Final = 1.0
"""Seconds for which an answer counts: many who ask do not mean many questions to Temporal and the store."""
OK: Final = "ok"


@dataclass(frozen=True, slots=True)
class Report:
    """An answer of the health endpoint. good: whether all is well. facts: what it says, as a JSON object."""

    good: bool
    facts: JsonDict = field(default_factory=dict[str, object])


class Vitals:
    """Looks after one worker. stopping: is set when the worker has begun to drain."""

    def __init__(self, plugin: EverturnPlugin, worker: Worker, client: Client, stopping: asyncio.Event) -> None:
        self._plugin, self._worker, self._client, self._stopping = plugin, worker, client, stopping
        self._started = time.monotonic()
        self._looked_at: float | None = None
        self._services: dict[str, str] = {}
        self._looking = asyncio.Lock()

    async def alive(self) -> Report:
        """Always good: a loop that does not turn gives no answer at all."""
        return Report(True, {"status": "alive", **self._counts()})

    async def ready(self) -> Report:
        """Good while the worker polls, is not draining, and reaches Temporal and the store."""
        if self._stopping.is_set():
            return Report(False, {"status": "draining", **self._counts()})
        if not (self._plugin.ready.is_set() and self._worker.is_running):
            return Report(False, {"status": "starting", **self._counts()})
        services = await self._look()
        good = all(found == OK for found in services.values())
        return Report(good, {"status": "ready" if good else "unavailable", **services, **self._counts()})

    def _counts(self) -> JsonDict:
        return {
            "running_turns": self._plugin.running_turns,
            "stalls": self._plugin.stalls,
            "longest_stall_ms": self._plugin.longest_stall_ms,
            "uptime_s": round(time.monotonic() - self._started),
        }

    async def _look(self) -> dict[str, str]:
        async with self._looking:
            if self._looked_at is None or time.monotonic() - self._looked_at > REMEMBER:
                temporal, store = await asyncio.gather(_answers(check_namespace(self._client)), self._store())
                self._services = {"temporal": temporal, "store": store}
                self._looked_at = time.monotonic()
            return self._services

    async def _store(self) -> str:
        store = self._plugin.store
        return await _answers(store.check()) if store is not None else "it is not open"


async def _answers(question: Awaitable[object]) -> str:
    """`ok`, or what is wrong."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await question
    except TimeoutError:
        return f"no answer within {CHECK_TIMEOUT:g} s"
    except RPCError as error:
        return f"{error.status.name.lower()}: {error.message}"
    except Unavailable as error:
        return str(error)
    return OK
