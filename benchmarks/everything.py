"""The whole comparison in half an hour: all contenders, Everturn's variants, and what is measured of it alone."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks import cancel_latency, lanes
from benchmarks.alone import footprint, live
from benchmarks.contenders import PEERS, VARIANTS
from benchmarks.environments import FOLDER, WANTED, make
from benchmarks.field import open_field
from benchmarks.plans import Plan, sections
from benchmarks.programs import ROOT, clean_environment
from benchmarks.report.results import Results, begin
from benchmarks.report.writing import write

MINUTES: Final = 30.0
PEERS_PLAN: Final[Plan] = {
    "latency": (20, 270),
    "streaming": (12, 120),
    "history": (1, 0),
    "growth": (7, 200),
    "throughput": (3, 240),
}
KILLED_PLAN: Final[Plan] = {"killed": (1, 0)}
VARIANTS_PLAN: Final[Plan] = {"latency": (12, 45), "streaming": (8, 20), "throughput": (2, 60)}
CANCELS: Final = ((1, 20), (100, 40), (200, 40))
"""Streams that go on, and how many are cancelled."""
_HOOK_TURNS: Final = 12
_LEAST: Final = 60.0
"""Seconds that must be left for another part to begin."""


class Clock:
    """What is left of the half hour."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self._began) / 60

    def allows(self, results: Results, part: str) -> bool:
        """False if the time is up, which is noted."""
        if self.minutes * 60 + _LEAST > MINUTES * 60:
            results.skipped.append(part)
            return False
        print(f"{self.minutes:4.1f} min: {part}", file=sys.stderr, flush=True)
        return True


async def run() -> int:
    """Measures, and writes the results' JSON file, page and chart."""
    clock = Clock()
    results = begin(datetime.now(UTC).strftime("%Y-%m-%d %H:%M"))
    FOLDER.mkdir(exist_ok=True)
    print("environments of the contenders …", file=sys.stderr, flush=True)
    for environment in WANTED:
        if problem := await asyncio.to_thread(make, environment):
            print(problem, file=sys.stderr)
    async with open_field(PEERS) as field:
        results.peers = await sections(field, PEERS_PLAN)
        results.missing |= field.missing
        results.alone["memory"] = footprint.memory(field)
        results.peers += await sections(field, KILLED_PLAN)
    results.save()
    if clock.allows(results, "PostgreSQL, two processes, live streams"):
        await _variants(results)
        results.save()
    await _alone(results, clock)
    results.minutes = clock.minutes
    path = results.save()
    problem = write(path)
    print(problem or f"{path.with_suffix('.md')}")
    return 1 if problem else 0


async def _variants(results: Results) -> None:
    async with open_field(VARIANTS) as field:
        results.variants = await sections(field, VARIANTS_PLAN)
        results.missing |= field.missing
        results.alone["memory"] |= footprint.memory(field)
        results.alone["live"] = await live.measure(field)
        results.alone["store"] = await footprint.store_growth(field)


async def _alone(results: Results, clock: Clock) -> None:
    parts: dict[str, Callable[[], Awaitable[Any]]] = {
        "starts": lambda: asyncio.to_thread(footprint.start_times),
        "cancels": _cancels,
        "lanes": lanes.measure,
        "hooks": _hooks,
    }
    for name, measure in parts.items():
        if clock.allows(results, name):
            results.alone[name] = await measure()


async def _cancels() -> list[dict[str, Any]]:
    found = [await cancel_latency.measure(concurrent, cancels) for concurrent, cancels in CANCELS]
    return [{"concurrent": one.concurrent, "p50_ms": one.p50, "p95_ms": one.p95} for one in found]


async def _hooks() -> str:
    """The table of benchmarks/hooks.py."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.hooks", str(_HOOK_TURNS)),
        cwd=ROOT,
        env=clean_environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 600)
    return output.decode()
