"""Worker processes that a test starts, kills and stops."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

AGENTS = Path(__file__).with_name("agents.py")
START_LIMIT = 40.0


@dataclass
class WorkerProcess:
    """One `everturn worker` process."""

    process: asyncio.subprocess.Process
    log: Path

    def kill(self) -> None:
        """As a crash would: no cleanup."""
        self.process.send_signal(signal.SIGKILL)

    async def stop(self, limit: float = 40.0) -> int:
        """SIGTERM, and the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(limit):
            return await self.process.wait()


@dataclass
class WorkerHouse:
    """Starts workers for one system, and leaves none behind."""

    environment: dict[str, str]
    folder: Path
    workers: list[WorkerProcess] = field(default_factory=list[WorkerProcess])

    async def start(self, **extra: str) -> WorkerProcess:
        """A worker that polls."""
        log = self.folder / f"worker-{len(self.workers)}.log"
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "everturn.worker",
                "worker",
                str(AGENTS),
                stdout=file,
                stderr=file,
                stdin=asyncio.subprocess.DEVNULL,
                env={**os.environ, **self.environment, **extra},
            )
        worker = WorkerProcess(process, log)
        self.workers.append(worker)
        async with asyncio.timeout(START_LIMIT):
            while b"polls task queue" not in log.read_bytes():
                if process.returncode is not None:
                    raise RuntimeError(f"the worker ended with {process.returncode}: {log.read_text()}")
                await asyncio.sleep(0.05)
        return worker

    async def end(self) -> None:
        for worker in self.workers:
            if worker.process.returncode is None:
                worker.kill()
                await worker.process.wait()


@asynccontextmanager
async def worker_house(environment: dict[str, str], folder: Path) -> AsyncIterator[WorkerHouse]:
    house = WorkerHouse(environment, folder)
    try:
        yield house
    finally:
        await house.end()
