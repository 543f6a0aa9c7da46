"""The field of the comparison: one Temporal server, one model server, and the contenders, each in its own processes."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client

from benchmarks.contenders import CONTENDERS, OURS
from benchmarks.entrant import Entrant
from benchmarks.programs import Programs, cpu_seconds, family
from everturn import Store
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions
from tests.services.postgres import postgres_service

_SETTLE_LIMIT: Final = 30.0
_QUIET: Final = 0.03
"""Share of a core that a process uses for polling."""


@dataclass
class Field:
    """entrants: by contender's name. missing: contenders that could not start, and why."""

    temporal: Client
    temporal_pid: int
    temporal_address: str
    model_url: str
    model_pid: int
    programs: Programs
    entrants: dict[str, Entrant] = field(default_factory=dict[str, Entrant])
    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def enter(self, name: str, postgres_url: str) -> None:
        """Starts a contender and warms it up; one that cannot is noted as missing."""
        contender = CONTENDERS[name]
        variables = {**self._variables(name), **contender.variables}
        if contender.worker == "everturn":
            url = postgres_url if contender.store == "postgresql" else f"sqlite:///{self.programs.folder / name}.db"
            await (await Store.open(url, create=True)).close()
            variables["EVERTURN_STORE"] = url
        entrant = Entrant(contender, self.programs, variables, name)
        try:
            await entrant.start()
            await entrant.warm_up()
        except (RuntimeError, TimeoutError, OSError) as error:
            self.missing[name] = f"{type(error).__name__}: {error}".strip()
            return
        self.entrants[name] = entrant

    def _variables(self, name: str) -> dict[str, str]:
        return {
            "BENCH_TEMPORAL": self.temporal_address,
            "BENCH_MODEL_URL": self.model_url,
            "BENCH_FOLDER": str(self.programs.folder),
            "BENCH_NAME": name,
            "EVERTURN_TARGET": self.temporal_address,
            "EVERTURN_TASK_QUEUE": name,
            "OPENAI_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LANGSMITH_TRACING": "false",
        }

    def cpu(self, name: str) -> dict[str, float]:
        """CPU seconds so far of the processes that a contender's turns use."""
        pids = self.entrants[name].pids
        used = {role: sum(cpu_seconds(member) for member in family(pid)) for role, pid in pids.items()}
        return {**used, "temporal": cpu_seconds(self.temporal_pid), "model": cpu_seconds(self.model_pid)}

    async def settled(self) -> None:
        """Waits until the processes have done what they do after their start, at most _SETTLE_LIMIT seconds."""
        pids = [pid for entrant in self.entrants.values() for pid in entrant.pids.values()]
        ends = time.monotonic() + _SETTLE_LIMIT
        while time.monotonic() < ends:
            before = sum(cpu_seconds(pid) for pid in pids)
            await asyncio.sleep(1)
            if sum(cpu_seconds(pid) for pid in pids) - before < _QUIET * len(pids):
                return

    async def history(self, workflow: str) -> tuple[int, int]:
        """Events and bytes of a workflow's history."""
        described = await self.temporal.get_workflow_handle(workflow).describe()
        info = described.raw_description.workflow_execution_info
        return info.history_length, info.history_size_bytes

    async def seen(self, turn: str) -> list[dict[str, Any]]:
        """The model requests of a turn, and when each token was written."""
        address = f"{self.model_url.removesuffix('/v1')}/seen/{turn}"

        def fetch() -> list[dict[str, Any]]:
            with urllib.request.urlopen(address, timeout=10) as answer:
                found: list[dict[str, Any]] = json.load(answer)
            return found

        return await asyncio.to_thread(fetch)


@asynccontextmanager
async def open_field(contenders: Iterable[str] = (OURS,)) -> AsyncGenerator[Field]:
    """Starts all of it, and stops it."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-bench-")))
        server = await stack.enter_async_context(EmbeddedServer(ServerOptions(state_file=None, ui=False)))
        programs = await stack.enter_async_context(Programs(folder))
        model = await programs.start("model", [sys.executable, "-m", "benchmarks.model.server"], {})
        model_url = await programs.says("model", "http://", model)
        temporal = await Client.connect(server.address)
        field_ = Field(temporal, server.pid, server.address, model_url, model.pid, programs)
        names = list(contenders)
        postgres_url = ""
        if any(CONTENDERS[name].store == "postgresql" for name in names):
            postgres = stack.enter_context(postgres_service())
            postgres_url = stack.enter_context(postgres.database())
        for name in names:
            await field_.enter(name, postgres_url)
        await field_.settled()
        yield field_
