"""CPU that a model call costs, by lane: from the request to the finished answer, deadlines and accumulator included.

    python -m benchmarks.lanes [--calls 30] [--chunks 400] [--at-once 50]

The model server runs in a process of its own; the figures are this process's CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager

from everturn.activities.models.accumulator import Accumulator
from everturn.activities.models.deadlines import Deadlines, with_deadlines
from everturn.activities.models.direct.lane import OpenAILane
from everturn.activities.models.litellm_lane import LiteLLMLane
from everturn.activities.models.types import ModelLane, ModelRequest


@contextmanager
def model_server() -> Iterator[str]:
    """The address of a scripted model server."""
    command = [sys.executable, "-m", "everturn.activities.scripted"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["base_url"])
        process.terminate()


async def call(lane: ModelLane, base: str, chunks: int) -> None:
    """One call with an answer of this many chunks."""
    messages = [{"role": "user", "content": "hello"}]
    request = ModelRequest(f"openai/text:tokens={chunks}", messages, api_base=base, api_key="none")
    accumulator = Accumulator()
    async with aclosing(with_deadlines(lane.stream(request), Deadlines())) as deltas:
        async for delta in deltas:
            accumulator.feed(delta)
    found = accumulator.close().usage.output_tokens
    assert found == chunks, found


async def cpu_of(lane: ModelLane, base: str, chunks: int, calls: int, at_once: int) -> float:
    """CPU seconds of one call, on average."""
    gate = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with gate:
            await call(lane, base, chunks)

    before = time.process_time()
    await asyncio.gather(*(one() for _ in range(calls)))
    return (time.process_time() - before) / calls


async def measure(calls: int = 30, chunks: int = 400, at_once: int = 50) -> dict[str, dict[str, float]]:
    """By lane: call_ms of an answer of one chunk, chunk_us of each further one, chunks a core-second, the same with
    many calls at once; all of this process's CPU."""
    litellm = LiteLLMLane()
    await litellm.warm_up()
    direct = OpenAILane(litellm)
    found: dict[str, dict[str, float]] = {}
    with model_server() as base:
        for name, lane in (("litellm", litellm), ("direct", direct)):
            await cpu_of(lane, base, 1, 3, 1)
            short = await cpu_of(lane, base, 1, calls, 1)
            long = await cpu_of(lane, base, chunks, calls, 1)
            many = await cpu_of(lane, base, chunks, at_once, at_once)
            found[name] = {
                "call_ms": short * 1e3,
                "chunk_us": (long - short) / (chunks - 1) * 1e6,
                "chunks_per_core_s": chunks / long,
                "chunks_per_core_s_at_once": chunks / many,
            }
    await direct.close()
    await litellm.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=30)
    parser.add_argument("--chunks", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=50)
    given = parser.parse_args()
    print("lane      ms a call, 1 chunk   µs a chunk   chunks a core-second, one at a time   the same, many at once")
    for name, lane in asyncio.run(measure(given.calls, given.chunks, given.at_once)).items():
        call_, chunk, single, many = lane.values()
        print(f"{name:<9} {call_:18.2f} {chunk:12.1f} {single:37,.0f} {many:24,.0f}")


if __name__ == "__main__":
    main()
