"""What Everturn needs when it does nothing much: memory, start-up time, room in the store."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.contenders import OURS, OURS_LITELLM, TWO_PROCESSES
from benchmarks.entrant import Entrant
from benchmarks.field import Field
from benchmarks.programs import ROOT, clean_environment, end, family, memory_mb
from benchmarks.samples import median
from everturn import Store

_STARTS: Final = 7
_TURNS: Final = 40
_COMMANDS: Final = {
    "everturn --help": ["-m", "everturn.worker", "--help"],
    "import everturn": ["-c", "import everturn"],
    "import everturn.worker.run": ["-c", "import everturn.worker.run"],
}


def memory(field: Field) -> dict[str, dict[str, float]]:
    """MB of each process, and of all worker processes together with shared pages counted once (pss)."""
    told: dict[str, dict[str, float]] = {}
    for name in (OURS, OURS_LITELLM, TWO_PROCESSES):
        entrant = field.entrants.get(name)
        if entrant is None:
            continue
        workers = family(entrant.pids["worker"])
        told[name] = {
            "worker_rss": max(memory_mb(pid) for pid in workers),
            "workers_pss": sum(memory_mb(pid, "Pss") for pid in workers),
            "client_rss": memory_mb(entrant.pids["client"]),
        }
    return told


def start_times() -> dict[str, dict[str, float | None]]:
    """Seconds that commands take, median of seven: by the clock, and of CPU."""
    return {name: _timed(arguments) for name, arguments in _COMMANDS.items()}


def _timed(arguments: list[str]) -> dict[str, float | None]:
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(_STARTS):
        began, used = time.perf_counter(), _children_cpu()
        command = [sys.executable, *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=clean_environment(), timeout=60)
        wall.append(time.perf_counter() - began)
        cpu.append(_children_cpu() - used)
    return {"wall_s": median(wall), "cpu_s": median(cpu)}


def _children_cpu() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def store_growth(field: Field) -> dict[str, Any]:
    """Bytes that a turn leaves in a SQLite file: 2 tool calls and an answer of 200 tokens, streamed at 50 a second."""
    name = "store-growth"
    path = field.programs.folder / f"{name}.db"
    await (await Store.open(f"sqlite:///{path}", create=True)).close()
    known = field.entrants[OURS]
    places = {"EVERTURN_STORE": f"sqlite:///{path}", "EVERTURN_TASK_QUEUE": name, "BENCH_NAME": name}
    entrant = Entrant(known.contender, field.programs, {**known.variables, **places}, name)
    await entrant.start()
    await entrant.warm_up()
    before = await _closed_size(entrant, path)
    await entrant.start()
    await entrant.turns(count=_TURNS, at_once=_TURNS, tools=2, tokens=200, gap_ms=20)
    return {"bytes_per_turn": (await _closed_size(entrant, path) - before) / _TURNS}


async def _closed_size(entrant: Entrant, path: Path) -> int:
    """The file's size once nobody has it open, which moves the write-ahead log into it."""
    for process in (entrant.client, entrant.worker):
        if process is not None:
            await end(process)
    store = await Store.open(f"sqlite:///{path}")
    await store.revision()
    await store.close()
    return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
