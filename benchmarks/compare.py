"""Everturn against what somebody would use instead, all in one run, by turns.

    python -m benchmarks.compare              everybody and everything, in at most half an hour: benchmarks/results/
    python -m benchmarks.compare --quick      three minutes: only the floor and the direct loop; prints a table
    python -m benchmarks.compare --sections latency --contenders floor,everturn --rounds 10

Only ratios of one run can be compared: machines differ, and the same machine differs from hour to hour.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Final

from benchmarks.contenders import PEERS, QUICK
from benchmarks.everything import run
from benchmarks.field import open_field
from benchmarks.plans import SECTIONS, Plan, sections
from benchmarks.report.table import comparison, failures
from everturn.worker.exit import guarded_exit

QUICK_PLAN: Final[Plan] = {"latency": (12, 45), "streaming": (8, 20), "history": (1, 10), "throughput": (1, 60)}


async def compare(contenders: Sequence[str], plan: Plan) -> str:
    """The table of a run."""
    async with open_field(contenders) as field:
        samples = await sections(field, plan)
        return "\n".join([*comparison(samples), *failures(samples, field.missing)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sections", default="", help=", ".join(SECTIONS))
    parser.add_argument("--contenders", default="", help=", ".join(PEERS))
    parser.add_argument("--rounds", type=int, default=0, help="of each section, instead of the planned ones")
    given = parser.parse_args()
    if not (given.quick or given.sections or given.contenders or given.rounds):
        return asyncio.run(run())
    contenders = given.contenders.split(",") if given.contenders else QUICK
    plan = {name: QUICK_PLAN.get(name, (1, 0.0)) for name in given.sections.split(",") if name} or QUICK_PLAN
    if given.rounds:
        plan = dict.fromkeys(plan, (given.rounds, 3600.0))
    print(asyncio.run(compare(contenders, plan)))
    return 0


if __name__ == "__main__":
    guarded_exit(main())
