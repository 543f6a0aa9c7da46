"""Kills a worker at every point of a turn, with several seeds, on both databases: `make chaos`.

    python -m tests.chaos [--seeds 1 2 3] [--databases sqlite postgresql] [--points WORDS] [--at-once 12]

Prints a table; exits 1 if anything is red.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from everturn.worker.exit import guarded_exit
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions
from tests.chaos.cell import Cell, Outcome
from tests.chaos.databases import KINDS, open_databases
from tests.chaos.matrix import open_services, run_cells, table
from tests.chaos.points import POINTS


async def run(cells: list[Cell], at_once: int) -> int:
    """0 if all is green; what red cells leave behind is kept."""
    folder = Path(tempfile.mkdtemp(prefix="everturn-chaos-"))
    started = time.monotonic()
    done = 0

    def told(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        for fault in outcome.faults:
            print(f"RED {outcome.cell.point.name}, seed {outcome.cell.seed}, {outcome.cell.database}: {fault}")
        if done % 25 == 0:
            print(f"{done} of {len(cells)} kills after {time.monotonic() - started:.0f} s", flush=True)

    kinds = tuple({cell.database for cell in cells})
    async with (
        EmbeddedServer(ServerOptions(state_file=None, ui=False)) as server,
        open_databases(folder, kinds) as databases,
        open_services(server.address) as services,
    ):
        outcomes = await run_cells(services, databases, cells, folder, at_once, told)
    print(table(outcomes))
    print(f"{time.monotonic() - started:.0f} s")
    if any(outcome.faults for outcome in outcomes):
        print(f"the workers' logs and the stores are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--databases", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--points", default="", help="only points whose name contains this")
    parser.add_argument("--at-once", type=int, default=12, help="systems that run side by side")
    given = parser.parse_args()
    points = [point for point in POINTS if given.points in point.name]
    cells = [Cell(point, seed, kind) for kind in given.databases for seed in given.seeds for point in points]
    if not cells:
        parser.error(f"no point's name contains {given.points!r}")
    return asyncio.run(run(cells, given.at_once))


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text stream, when run as a command
    guarded_exit(main())
