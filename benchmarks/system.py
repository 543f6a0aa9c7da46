"""The system under measurement: every part in a process of its own, as in production, on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from everturn import ChatClient, Store
from everturn.ids import workflow_id
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions

AGENTS = Path(__file__).with_name("agents.py")
START_LIMIT = 60.0


@dataclass
class System:
    """A Temporal server, a model server, a worker, and a client in this process."""

    chat: ChatClient
    temporal: Client
    model_url: str
    store_url: str
    processes: dict[str, int]
    """Their process ids."""

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time that each process has used so far."""
        used = {name: _cpu(pid) for name, pid in self.processes.items()}
        return {**used, "client": time.process_time()}

    async def history(self, request_id: str) -> tuple[int, int]:
        """Events and bytes of a turn's history."""
        handle = self.temporal.get_workflow_handle(workflow_id(request_id))
        info = (await handle.describe()).raw_description.workflow_execution_info
        return info.history_length, info.history_size_bytes

    async def model_log(self, **query: str) -> list[dict[str, Any]]:
        """What the model server saw."""
        arguments = "&".join(f"{key}={value}" for key, value in query.items())
        address = f"{self.model_url.removesuffix('/v1')}/log?{arguments}"

        def fetch() -> list[dict[str, Any]]:
            with urllib.request.urlopen(address, timeout=10) as answer:
                found = json.load(answer)
            requests: list[dict[str, Any]] = found["requests"] if isinstance(found, dict) else found
            return requests

        return await asyncio.to_thread(fetch)


@asynccontextmanager
async def running_system(
    store_url: str | None = None, *, agents: Path = AGENTS, on_disk: bool = False, **environment: str
) -> AsyncIterator[System]:
    """Starts everything, and stops it.

    store_url: default a fresh SQLite file. agents: the worker's module. on_disk: Temporal keeps its state in a file.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-bench-")))
        state = folder / "temporal.db" if on_disk else None
        server = await stack.enter_async_context(EmbeddedServer(ServerOptions(state_file=state, ui=False)))
        url = store_url or f"sqlite:///{folder / 'store.db'}"
        store = await Store.open(url, create=True)
        stack.push_async_callback(store.close)
        model = await _start(stack, ["-m", "everturn.activities.scripted", "--port", "0"], folder / "model.log", {})
        model_url = json.loads(await _line(folder / "model.log", '"base_url"', model))["base_url"]
        names = {
            "EVERTURN_TARGET": server.address,
            "EVERTURN_STORE": url,
            "BENCH_MODEL_URL": model_url,
            **environment,
        }
        worker = await _start(stack, ["-m", "everturn.worker", "worker", str(agents)], folder / "worker.log", names)
        await _line(folder / "worker.log", "polls task queue", worker)
        temporal = await Client.connect(server.address)
        chat = await ChatClient.connect(temporal, store=store)
        processes = {"worker": worker.pid, "model": model.pid, "temporal": server.pid}
        yield System(chat, temporal, model_url, url, processes)


async def _start(
    stack: AsyncExitStack, arguments: list[str], log: Path, environment: dict[str, str]
) -> asyncio.subprocess.Process:
    file = stack.enter_context(log.open("wb"))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=file,
        stderr=file,
        env={**os.environ, **environment},
    )
    stack.push_async_callback(_stop, process)
    return process


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 45)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _line(log: Path, text: str, process: asyncio.subprocess.Process) -> str:
    """The first line of the log that contains `text`."""
    async with asyncio.timeout(START_LIMIT):
        while True:
            for line in log.read_text(errors="replace").splitlines():
                if text in line:
                    return line
            if process.returncode is not None:
                raise RuntimeError(f"{log.stem} ended with {process.returncode}: {log.read_text()}")
            await asyncio.sleep(0.05)


def _cpu(pid: int) -> float:
    """Seconds of CPU of another process, to the nanosecond (Linux)."""
    return time.clock_gettime(((~pid) << 3) | 2)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
