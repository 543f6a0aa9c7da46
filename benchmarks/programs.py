"""Processes of a measurement: started, watched, always ended."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PATIENCE: Final = 40.0
"""Seconds that a process has to stop; workers hand running steps over first."""
ROOT: Final = Path(__file__).parent.parent


class Programs:
    """The processes of one measurement, with their logs in a folder; `async with` ends all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Programs:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(end(process) for process in reversed(self._started)))

    async def start(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], *, talks: bool = False
    ) -> asyncio.subprocess.Process:
        """Starts a program in the repository's root. talks: input and output are pipes; else all goes to its log."""
        with self.log(name).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=ROOT,
                env={**clean_environment(), **variables},
                stdin=asyncio.subprocess.PIPE if talks else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if talks else log,
                stderr=log,
                limit=1 << 26,
            )
        self._started.append(process)
        return process

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    async def says(self, name: str, text: str, process: asyncio.subprocess.Process, limit: float = 60.0) -> str:
        """The first line of a program's log with `text`. Raises RuntimeError if it ends before, TimeoutError."""
        async with asyncio.timeout(limit):
            while True:
                for line in self.log(name).read_text(errors="replace").splitlines():
                    if text in line:
                        return line
                if process.returncode is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}: {self.last_words(name)}")
                await asyncio.sleep(0.05)

    def last_words(self, name: str) -> str:
        return self.log(name).read_text(errors="replace")[-1_500:]


async def end(process: asyncio.subprocess.Process) -> None:
    """SIGTERM, and SIGKILL after PATIENCE."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        process.kill()
        await process.wait()


def clean_environment() -> dict[str, str]:
    """This process's environment without proxies and settings that would change what is measured."""
    dropped = ("EVERTURN_", "TEMPORAL_", "BENCH_", "OPENAI_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) and not name.lower().endswith("_proxy")
    }
    return kept | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "PYTHONWARNINGS": "ignore"}


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, to the nanosecond (Linux); 0 for one that is gone."""
    try:
        return time.clock_gettime(((~pid) << 3) | 2)
    except OSError:
        return 0.0


def family(pid: int) -> list[int]:
    """A process and its descendants (Linux)."""
    found = [pid]
    for member in found:
        for children in Path(f"/proc/{member}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def memory_mb(pid: int, kind: str = "Rss") -> float:
    """Memory of a process in MB. kind: Rss, or Pss, which counts shared pages once over all that share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} tells no {kind}")
