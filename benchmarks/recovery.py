"""How long a turn is silent when something is lost in the middle of its stream: for each kind p50 and max.

    python -m benchmarks.recovery [--turns 20] [--at-once 10] [--kinds WORDS]

`--at-once` turns stream in one system when the outage begins. The silence is the longest time in which the client of a
turn saw nothing new, from the begin of the outage to the end of the turn; without an outage it is about 0.06 s. Fails
if a turn loses or doubles a word, or does not end.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from benchmarks.system import percentile
from everturn.worker.exit import guarded_exit
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions
from tests.chaos.databases import open_databases
from tests.chaos.matrix import open_services
from tests.chaos.outages import OUTAGES, Ground, Outage, Suffered, suffer

KINDS = [outage.name for outage in OUTAGES]
WIDTH = max(map(len, KINDS))


async def measure(ground: Ground, outage: Outage, turns: int, at_once: int) -> Suffered:
    """Round by round, so that one system is under observation at a time."""
    silences: list[float] = []
    faults: list[str] = []
    while len(silences) < turns and not faults:
        folder = Path(tempfile.mkdtemp(dir=ground.folder))
        given = Ground(ground.services, ground.databases, folder)
        found = await suffer(outage, given, min(at_once, turns - len(silences)))
        silences += found.silences
        faults += found.faults
    return Suffered(silences, faults)


async def main(turns: int, at_once: int, kinds: str) -> int:
    """0 if no turn was harmed."""
    red = False
    with tempfile.TemporaryDirectory(prefix="everturn-recovery-") as name:
        async with (
            EmbeddedServer(ServerOptions(state_file=None, ui=False)) as server,
            open_databases(Path(name), ("sqlite",)) as databases,
            open_services(server.address) as services,
        ):
            print(f"{'lost in the middle of a stream':<{WIDTH}}  away s   turns  silence p50 s   max s")
            for outage in (outage for outage in OUTAGES if kinds in outage.name):
                found = await measure(Ground(services, databases, Path(name)), outage, turns, at_once)
                p50, longest = percentile(found.silences, 0.5), max(found.silences)
                line = (
                    f"{outage.name:<{WIDTH}} {outage.seconds:7.1f} {len(found.silences):7} {p50:14.2f} {longest:7.2f}"
                )
                print(line, flush=True)
                for fault in found.faults:
                    print(f"  RED {fault}")
                red = red or bool(found.faults)
    return 1 if red else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--kinds", default="", help="only kinds whose name contains this")
    given = parser.parse_args()
    guarded_exit(asyncio.run(main(given.turns, given.at_once, given.kinds)))
