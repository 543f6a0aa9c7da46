"""Turns through the whole system, against the same model calls in a plain loop with nothing durable.

    python -m benchmarks.turns [repetitions]

Prints medians and ratios of one run: machines differ, and the same machine differs from hour to hour.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing
from dataclasses import dataclass, field

from benchmarks.system import System, percentile, running_system
from everturn import Model
from everturn.activities.models.accumulator import Accumulator
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.types import ModelRequest
from everturn.turns import JsonDict
from everturn.worker.exit import guarded_exit

TOOLS = (0, 2, 5)
CONCURRENT = (1, 8, 32)
LOOKUP: JsonDict = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Looks something up.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}


@dataclass
class Times:
    """Seconds of the repetitions of one kind of turn."""

    whole: list[float] = field(default_factory=list[float])
    first: list[float] = field(default_factory=list[float])

    def row(self) -> str:
        return f"{percentile(self.whole, 0.5) * 1000:7.0f} {percentile(self.whole, 0.95) * 1000:7.0f}"


def message(tools: int) -> str:
    return f"[[tools calls={tools} sequential=1 tool=lookup finish=text]]" if tools else "[[text tokens=20]]"


async def durable(system: System, thread: str, tools: int, times: Times) -> str:
    started = time.perf_counter()
    turn = await system.chat.submit(thread, message(tools), agent="bench")
    first = None
    async for chunk in turn.stream():
        if first is None and chunk.type == "text-delta":
            first = time.perf_counter() - started
    result = await turn.result(60)
    assert result.status == "completed", result
    times.whole.append(time.perf_counter() - started)
    times.first.append(first or times.whole[-1])
    return turn.request_id


async def plain(lanes: ModelLanes, system: System, tools: int, times: Times) -> None:
    """The same calls of the same model by the same lane, results handed back by hand."""
    started = time.perf_counter()
    resolved = await lanes.resolve("openai/scripted", api_base=system.model_url)
    messages: list[JsonDict] = [{"role": "user", "content": message(tools)}]
    first = None
    while True:
        request = ModelRequest(resolved.model, messages, [LOOKUP], api_base=resolved.api_base, api_key=resolved.api_key)
        accumulator = Accumulator(len(messages))
        async with aclosing(resolved.lane.stream(request)) as deltas:
            async for delta in deltas:
                accumulator.feed(delta)
                if first is None and delta.text:
                    first = time.perf_counter() - started
        done = accumulator.close()
        if not done.calls:
            break
        calls = [
            {"id": c.tool_call_id, "type": "function", "function": {"name": c.tool_name, "arguments": '{"n": 1}'}}
            for c in done.calls
        ]
        messages.append({"role": "assistant", "content": done.text or None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": c.tool_call_id, "content": "result 1"} for c in done.calls]
    times.whole.append(time.perf_counter() - started)
    times.first.append(first or times.whole[-1])


async def latency(system: System, lanes: ModelLanes, repetitions: int) -> None:
    print("one turn at a time     p50 ms  p95 ms   first token p50 ms   history events / bytes")
    for tools in TOOLS:
        ours, theirs = Times(), Times()
        request_id = ""
        for number in range(repetitions):
            request_id = await durable(system, f"latency-{tools}-{number}", tools, ours)
            await plain(lanes, system, tools, theirs)
        events, size = await system.history(request_id)
        print(f"{tools} tools, Everturn    {ours.row()}   {percentile(ours.first, 0.5) * 1000:7.0f}", end="")
        print(f"   {events:6} / {size:,}")
        print(f"{tools} tools, plain loop  {theirs.row()}   {percentile(theirs.first, 0.5) * 1000:7.0f}", end="")
        ratio = percentile(ours.whole, 0.5) / percentile(theirs.whole, 0.5)
        print(f"   Everturn ÷ plain: {ratio:.1f}")


async def throughput(system: System) -> None:
    print("2-tool turns at once   turns/s   CPU ms a turn: worker / Temporal / client")
    for concurrent in CONCURRENT:
        count = max(24, concurrent * 2)
        gate = asyncio.Semaphore(concurrent)

        async def one(number: int, gate: asyncio.Semaphore = gate, concurrent: int = concurrent) -> None:
            async with gate:
                await durable(system, f"load-{concurrent}-{number}", 2, Times())

        before, started = system.cpu_seconds(), time.perf_counter()
        await asyncio.gather(*(one(number) for number in range(count)))
        seconds = time.perf_counter() - started
        used = {name: (value - before[name]) / count * 1000 for name, value in system.cpu_seconds().items()}
        print(f"{concurrent:20}   {count / seconds:7.1f}", end="   ")
        print(f"{used['worker']:.0f} / {used['temporal']:.0f} / {used['client']:.0f}")


async def main(repetitions: int) -> int:
    lanes = ModelLanes()
    await lanes.warm_up([Model("openai/scripted")])
    async with running_system() as system:
        for tools in TOOLS:
            await durable(system, f"warm-{tools}", tools, Times())
            await plain(lanes, system, tools, Times())
        await latency(system, lanes, repetitions)
        await throughput(system)
    await lanes.close()
    return 0


if __name__ == "__main__":
    guarded_exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)))
