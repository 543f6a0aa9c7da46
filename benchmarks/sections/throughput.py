"""Turns a second with 1, 8 and 32 at once, and the CPU that a turn costs in each process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from benchmarks.field import Field
from benchmarks.samples import Sample, percentile
from benchmarks.schedule import Budget, rotated

PLAN: Final[Mapping[int, int]] = {1: 6, 8: 24, 32: 48}
"""Turns at once → turns of a round."""
_SETTLE: Final = 0.5
_IDLE: Final = 2.0


async def measure(field: Field, budget: Budget, plan: Mapping[int, int] = PLAN) -> list[Sample]:
    samples: list[Sample] = []
    idle = await _idle(field)
    for number in budget.rounds():
        for at_once, count in plan.items():
            for name in rotated(list(field.entrants), number):
                sample = await _load(field, name, at_once, count, idle[name])
                samples.append({"section": "throughput", "contender": name, "round": number, **sample})
    return samples


async def _load(field: Field, name: str, at_once: int, count: int, idle: Mapping[str, float]) -> Sample:
    before, began = field.cpu(name), asyncio.get_running_loop().time()
    done = await field.entrants[name].turns(count=count, at_once=at_once, tools=2, tokens=20)
    await asyncio.sleep(_SETTLE)  # what a turn leaves to be done belongs to it
    passed = asyncio.get_running_loop().time() - began
    used = {
        role: max(0.0, (after - before[role] - idle[role] * passed) / count * 1000)
        for role, after in field.cpu(name).items()
    }
    times = [(turn["ended"] - turn["began"]) * 1000 for turn in done["turns"]]
    problems = [turn["error"] for turn in done["turns"] if turn.get("error")]
    return {
        "at_once": at_once,
        "turns": count,
        "turns_per_s": count / done["seconds"],
        "p50_ms": percentile(times, 0.5),
        "p95_ms": percentile(times, 0.95),
        "cpu_ms": used,
        "error": problems[0] if problems else None,
    }


async def _idle(field: Field) -> dict[str, dict[str, float]]:
    """CPU seconds that each process uses in a second without turns, to be taken off."""
    before = {name: field.cpu(name) for name in field.entrants}
    await asyncio.sleep(_IDLE)
    return {
        name: {role: (after - before[name][role]) / _IDLE for role, after in field.cpu(name).items()}
        for name in field.entrants
    }
