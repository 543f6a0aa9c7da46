"""A mix of turns for a long time, and whether anything is left over: memory, sockets, threads, tasks, turns.

    python -m benchmarks.soak [--minutes 30] [--users 8]

Users talk without a pause (plain answers, tools, cancels, approvals), so the load is what the machine holds. The first
tenth of the time is for warming up. Exits 1 if memory of the worker or the client grew by more than 10 % from the first
to the last third of the rest, if sockets, files, threads or tasks grew, or if a turn ended wrongly or not at all.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path

from benchmarks.soak_load import Tally, User
from benchmarks.soak_samples import Sample, growth, sample, tasks_here, tasks_of_worker
from benchmarks.system import System, running_system
from everturn.worker.exit import guarded_exit

AGENTS = Path(__file__).with_name("soak_agents.py")
SAMPLES = 120
"""So many are taken, however long it runs."""
END_LIMIT = 60.0


async def observe(system: System, seconds: float, tally: Tally) -> dict[str, list[Sample]]:
    """Samples of the worker and of this process, after the first tenth of the time."""
    taken: dict[str, list[Sample]] = {"worker": [], "client": []}
    began = time.monotonic()
    await asyncio.sleep(seconds / 10)
    while time.monotonic() - began < seconds:
        taken["worker"].append(sample(system.processes["worker"], await tasks_of_worker(system.chat)))
        taken["client"].append(sample(os.getpid(), tasks_here()))
        if len(taken["worker"]) % (SAMPLES // 10) == 1:
            now = {name: f"{samples[-1].rss:.0f} MiB" for name, samples in taken.items()}
            print(f"{time.monotonic() - began:6.0f} s {tally.turns:8} turns {len(tally.wrong)} wrong {now}", flush=True)
        await asyncio.sleep(seconds / SAMPLES)
    return taken


async def left_over(system: System) -> list[str]:
    """Turns that neither the store nor Temporal has closed a minute after the last user went."""
    found: list[str] = []
    for status in ("queued", "running", "waiting"):
        stuck = await system.chat.list_turns(None, status, 10)
        found += [f"turn {turn.request_id} of {turn.thread_id} is still {status}" for turn in stuck]
    deadline = time.monotonic() + END_LIMIT
    while (count := (await system.temporal.count_workflows("ExecutionStatus='Running'")).count) > 0:
        if time.monotonic() > deadline:
            found.append(f"{count} workflows still run")
            break
        await asyncio.sleep(0.5)
    return found


async def main(minutes: float, users: int) -> int:
    """0 if nothing is left over."""
    tally, stop = Tally(), asyncio.Event()
    async with running_system(agents=AGENTS, on_disk=True) as system:
        talking = [asyncio.create_task(User(system.chat, seed, tally).talk(stop)) for seed in range(users)]
        began = time.monotonic()
        taken = await observe(system, minutes * 60, tally)
        took = time.monotonic() - began
        stop.set()
        await asyncio.gather(*talking)
        faults = tally.wrong + await left_over(system)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.done.items()))
    print(f"{tally.turns} turns in {took:.0f} s ({tally.turns / took:.1f} a second) by {users} users: {kinds}")
    for name, samples in taken.items():
        faults += growth(name, samples, users)
    for fault in faults:
        print(f"RED {fault}")
    print("red" if faults else "green: nothing is left over")
    return 1 if faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--users", type=int, default=8)
    given = parser.parse_args()
    guarded_exit(asyncio.run(main(given.minutes, given.users)))
