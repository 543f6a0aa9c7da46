"""From `cancel_chat` to the moment at which the provider sees its connection close, while many turns stream.

    python -m benchmarks.cancel_latency [concurrent turns] [cancels]

Fails if the 95th percentile is over 100 ms, a partial answer is not stored, or a thread's next turn does not work.
"""

from __future__ import annotations

import asyncio
import sys
import time

from benchmarks.system import System, percentile, running_system
from everturn import Turn
from everturn.worker.exit import guarded_exit

LIMIT = 0.1
TEXT = "[[text tokens=3000 delay_ms=250]] turn {}"


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


async def measure(concurrent: int, cancels: int) -> int:
    async with running_system() as system:
        turns = await asyncio.gather(*(started(system, number) for number in range(concurrent + cancels)))
        asked: list[float] = []
        for turn in turns[:cancels]:
            asked.append(time.time())
            assert await system.chat.cancel_chat(turn.request_id, "measured") == "cancelled"
            await asyncio.sleep(0.15)
        closings = [await closed_at(system, number) - at for number, at in enumerate(asked)]
        results = [await turn.result(15) for turn in turns[:cancels]]
        kept = all(result.status == "aborted" and result.text.startswith("w0001") for result in results)
        after = await system.chat.run("thread-0", "[[say text=next]]", agent="bench", timeout=15)
        await asyncio.gather(*(system.chat.cancel_chat(turn.request_id) for turn in turns[cancels:]))
    p50, p95 = percentile(closings, 0.5), percentile(closings, 0.95)
    print(f"cancel → provider's socket closed, {concurrent} turns streaming, n={cancels}:", end=" ")
    print(f"p50 {p50 * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, max {max(closings) * 1000:.0f} ms (limit: p95 < 100 ms)")
    print(f"partial text stored: {kept}; next turn of a cancelled thread: {after.status} {after.text!r}")
    return 0 if p95 < LIMIT and kept and after.text == "next" else 1


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    guarded_exit(asyncio.run(measure(*given) if len(given) == 2 else measure(100, 40)))
