"""Which sections run, for how many rounds, for how long."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from benchmarks.field import Field
from benchmarks.samples import Sample
from benchmarks.schedule import Budget
from benchmarks.sections import growth, history, killed, latency, streaming, throughput

Section = Callable[[Field, Budget], Awaitable[list[Sample]]]
Plan = Mapping[str, tuple[int, float]]
"""Section → at most so many rounds and, after the first, seconds."""
SECTIONS: Final[Mapping[str, Section]] = {
    "latency": latency.measure,
    "streaming": streaming.measure,
    "history": history.measure,
    "growth": growth.measure,
    "throughput": throughput.measure,
    "killed": killed.measure,
}


async def sections(field: Field, plan: Plan) -> list[Sample]:
    """Runs the plan's sections one after the other."""
    samples: list[Sample] = []
    for name, (rounds, seconds) in plan.items():
        print(f"{name} …", file=sys.stderr, flush=True)
        samples += await SECTIONS[name](field, Budget(rounds, seconds))
    return samples
