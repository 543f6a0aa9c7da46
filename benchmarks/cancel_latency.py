"""From `cancel_chat` to the moment at which the provider sees its connection close, while many turns stream.

    python -m benchmarks.cancel_latency [concurrent turns] [cancels]

Fails if the 95th percentile is over 100 ms, a partial answer is not stored, or a thread's next turn does not work.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass

from benchmarks.samples import percentile
from benchmarks.system import System, running_system
from everturn import Turn
from everturn.worker.exit import guarded_exit

LIMIT_MS = 100.0
TEXT = "[[text tokens=3000 delay_ms=250]] turn {}"


@dataclass(frozen=True, slots=True)
class Cancels:
    """Milliseconds of each cancel. kept: all partial answers were stored. next: a thread's next turn worked."""

    concurrent: int
    closing_ms: list[float]
    kept: bool
    next: bool

    @property
    def p50(self) -> float:
        return percentile(self.closing_ms, 0.5) or 0.0

    @property
    def p95(self) -> float:
        return percentile(self.closing_ms, 0.95) or 0.0


async def started(system: System, number: int) -> Turn:
    turn = await system.chat.submit(f"thread-{number}", TEXT.format(f"n{number:04d}"), agent="bench")
    async for chunk in turn.stream():
        if chunk.type == "text-delta":
            break
    return turn


async def closed_at(system: System, number: int) -> float:
    async with asyncio.timeout(15):
        while True:
            for record in await system.model_log(contains=f"n{number:04d}"):
                if record["client_closed"]:
                    return float(record["t_closed"])
            await asyncio.sleep(0.1)


async def measure(concurrent: int, cancels: int) -> Cancels:
    """Cancels so many turns, one after the other, while `concurrent` others stream."""
    room = concurrent + cancels + 1  # else the last turns wait for the first to end
    async with running_system(EVERTURN_MAX_CONCURRENT_ACTIVITIES=str(room)) as system:
        turns = await asyncio.gather(*(started(system, number) for number in range(concurrent + cancels)))
        asked: list[float] = []
        for turn in turns[:cancels]:
            asked.append(time.time())
            assert await system.chat.cancel_chat(turn.request_id, "measured") == "cancelled"
            await asyncio.sleep(0.15)
        closings = [(await closed_at(system, number) - at) * 1000 for number, at in enumerate(asked)]
        results = [await turn.result(15) for turn in turns[:cancels]]
        kept = all(result.status == "aborted" and result.text.startswith("w0001") for result in results)
        after = await system.chat.run("thread-0", "[[say text=next]]", agent="bench", timeout=15)
        await asyncio.gather(*(system.chat.cancel_chat(turn.request_id) for turn in turns[cancels:]))
    return Cancels(concurrent, closings, kept, after.text == "next")


def main(concurrent: int, cancels: int) -> int:
    found = asyncio.run(measure(concurrent, cancels))
    print(f"cancel → provider's socket closed, {concurrent} turns streaming, n={cancels}:", end=" ")
    print(f"p50 {found.p50:.0f} ms, p95 {found.p95:.0f} ms, max {max(found.closing_ms):.0f} ms (limit: p95 < 100 ms)")
    print(f"partial text stored: {found.kept}; next turn of a cancelled thread works: {found.next}")
    return 0 if found.p95 < LIMIT_MS and found.kept and found.next else 1


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    guarded_exit(main(*given) if len(given) == 2 else main(100, 40))
