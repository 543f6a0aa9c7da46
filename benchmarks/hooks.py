"""What hooks cost: turns with every hook point implemented, by hooks that do nothing, against turns with none.

    python -m benchmarks.hooks [turns]

The two kinds take turns in one run, so that what else the machine does meets both. Only points that run before the
answer is complete can hold it up; on_chat_response and on_turn_end come after it, and on_chunk beside it.
"""

from __future__ import annotations

import asyncio
import sys
import time

from benchmarks.system import System, percentile, running_system
from everturn.worker.exit import guarded_exit

TOOLS = (0, 2)
BESIDE_THE_ANSWER = frozenset({"on_chunk", "on_chat_response", "on_turn_end"})


async def one_turn(system: System, agent: str, thread: str, tools: int) -> tuple[float, str]:
    """Seconds from the submission to the end of the stream, and the turn's id."""
    script = f"[[tools calls={tools} sequential=1 tool=lookup finish=text]]" if tools else "[[text tokens=20]]"
    started = time.perf_counter()
    turn = await system.chat.submit(thread, script, agent=agent)
    async for _ in turn.stream():
        pass
    seconds = time.perf_counter() - started
    assert (await turn.result(60)).status == "completed"
    return seconds, turn.request_id


async def visits_of(system: System, request_id: str) -> int:
    """How many hook runs stood in the way of a turn's answer."""
    info = await system.chat.inspect(request_id)
    return sum(trace.point not in BESIDE_THE_ANSWER for trace in info.hook_traces)


async def compare(system: System, tools: int, repetitions: int) -> None:
    without: list[float] = []
    with_hooks: list[float] = []
    request_id = ""
    for number in range(repetitions):
        seconds, _ = await one_turn(system, "bench", f"none-{tools}-{number}", tools)
        without.append(seconds)
        seconds, request_id = await one_turn(system, "hooked", f"all-{tools}-{number}", tools)
        with_hooks.append(seconds)
    visits = await visits_of(system, request_id)
    for label, times in (("no hooks", without), ("every point", with_hooks)):
        print(f"{tools} tools, {label:12} {percentile(times, 0.5) * 1000:7.1f} {percentile(times, 0.95) * 1000:7.1f}")
    added = percentile(with_hooks, 0.5) - percentile(without, 0.5)
    ratio = percentile(with_hooks, 0.5) / percentile(without, 0.5)
    each = added / visits * 1000
    share = added / visits / percentile(without, 0.5)
    print(f"   every point ÷ none: {ratio:.2f}; {visits} hook runs before the answer was complete:", end=" ")
    print(f"{each:.1f} ms each, {share:.1%} of a turn without hooks")


async def main(repetitions: int) -> int:
    async with running_system() as system:
        for agent in ("bench", "hooked"):
            await one_turn(system, agent, f"warm-{agent}", 1)
        print(f"{repetitions} turns of each kind    p50 ms  p95 ms")
        for tools in TOOLS:
            await compare(system, tools, repetitions)
    return 0


if __name__ == "__main__":
    guarded_exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)))
