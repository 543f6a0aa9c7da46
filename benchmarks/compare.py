"""Everturn against what somebody would use instead, all in one run, by turns.

    python -m benchmarks.compare --quick      three minutes: the floor and the direct loop only; prints a table
    python -m benchmarks.compare              half an hour: everybody, everything; writes benchmarks/results/
    python -m benchmarks.compare --sections latency --contenders floor,everturn --rounds 10

Only ratios of one run can be compared: machines differ, and the same machine differs from hour to hour.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from benchmarks.contenders import CONTENDERS, QUICK
from benchmarks.field import Field, open_field
from benchmarks.report.table import comparison
from benchmarks.samples import Sample
from benchmarks.schedule import Budget
from benchmarks.sections import history, latency, streaming, throughput
from everturn.worker.exit import guarded_exit

Section = Callable[[Field, Budget], Awaitable[list[Sample]]]
SECTIONS: Final[dict[str, Section]] = {
    "latency": latency.measure,
    "streaming": streaming.measure,
    "history": history.measure,
    "throughput": throughput.measure,
}
_QUICK: Final = {"latency": (12, 45.0), "streaming": (8, 20.0), "history": (1, 10.0), "throughput": (1, 60.0)}
"""Section → at most so many rounds and seconds."""


async def run(contenders: Sequence[str], plan: dict[str, tuple[int, float]]) -> tuple[list[Sample], dict[str, str]]:
    """The samples, and who could not take part and why."""
    samples: list[Sample] = []
    async with open_field(contenders) as field:
        for name, (rounds, seconds) in plan.items():
            print(f"{name} …", file=sys.stderr, flush=True)
            samples += await SECTIONS[name](field, Budget(rounds, seconds))
        return samples, field.missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--contenders", default="")
    parser.add_argument("--rounds", type=int, default=0, help="of each section, instead of the planned ones")
    given = parser.parse_args()
    contenders = given.contenders.split(",") if given.contenders else QUICK if given.quick else list(CONTENDERS)
    plan = {name: (given.rounds, 3600.0) if given.rounds else _QUICK[name] for name in given.sections.split(",")}
    samples, missing = asyncio.run(run(contenders, plan))
    print(comparison(samples, missing))
    return 0


if __name__ == "__main__":
    guarded_exit(main())
