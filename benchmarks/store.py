"""Times the store: `python benchmarks/store.py sqlite:////tmp/x.db` (or a PostgreSQL URL; the database is filled)."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from functools import partial

from everturn.chunks import TEXT_DELTA, Event
from everturn.store.records import Admission, Ending, EventBatch, StepRecord
from everturn.store.store import Store
from everturn.turns import Usage

ROUNDS = 200
STREAMS = 100
TOKENS_PER_SECOND = 50
SECONDS = 5.0


async def main(url: str) -> None:
    store = await Store.open(url, create=True)
    print(store)
    await calls(store)
    await streams(store, tailed=False)
    await streams(store, tailed=True)
    await store.close()


async def calls(store: Store) -> None:
    """One turn after the other: what each write of a turn takes."""
    times: dict[str, list[float]] = {}

    async def timed(name: str, work: Callable[[], Awaitable[object]]) -> None:
        begun = time.perf_counter()
        await work()
        times.setdefault(name, []).append((time.perf_counter() - begun) * 1000)

    for _ in range(ROUNDS):
        turn = new_turn()
        request_id = turn.request_id
        batch = EventBatch(request_id, [delta(str(n)) for n in range(5)], 0, 1)
        step = StepRecord(request_id, 0, 1, "m", [{"type": "text", "text": "x" * 1600}], [], "stop", Usage(1, 1), 1)
        await timed("begin", partial(store.begin, turn))
        await timed("load_prompt", partial(store.load_prompt, request_id))
        await timed("open_step", partial(store.open_step, request_id, 0, activity="m", try_=1))
        await timed("append 5", partial(store.append, batch))
        await timed("commit_step", partial(store.commit_step, step, [Event("finish-step")]))
        await timed("finish", partial(store.finish, Ending(request_id, "completed", "end_turn")))
    for name, took in times.items():
        print(f"{name:12} p50 {statistics.median(took):6.2f} ms   p95 {statistics.quantiles(took, n=20)[-1]:6.2f} ms")


async def streams(store: Store, *, tailed: bool) -> None:
    """Many turns that stream at once: process CPU, and how late a reader sees a token."""
    turns = [new_turn() for _ in range(STREAMS)]
    for turn in turns:
        await store.begin(turn)
        await store.open_step(turn.request_id, 0, activity="m", try_=1)
    late: list[float] = []

    async def write(request_id: str) -> None:
        writer = store.writer(request_id, 0, 1)
        for _ in range(int(SECONDS * TOKENS_PER_SECOND)):
            writer.put(delta(f"{time.perf_counter():.6f} "))
            await asyncio.sleep(1 / TOKENS_PER_SECOND)
        await writer.drain()
        await store.finish(Ending(request_id, "completed", "end_turn"))

    async def read(request_id: str) -> None:
        async for chunk in store.tail(request_id):
            if chunk.type == TEXT_DELTA:
                seen = time.perf_counter()
                late.extend((seen - float(sent)) * 1000 for sent in chunk.data["delta"].split())

    begun, cpu = time.perf_counter(), time.process_time()
    readers = [asyncio.create_task(read(turn.request_id)) for turn in turns] if tailed else []
    await asyncio.gather(*(write(turn.request_id) for turn in turns), *readers)
    took, used = time.perf_counter() - begun, time.process_time() - cpu
    line = f"{STREAMS} streams of {TOKENS_PER_SECOND}/s for {took:.1f} s: {used / took:.0%} of a core"
    if late:
        line += f"; with tails, token seen after p50 {statistics.median(late):.0f} ms"
        line += f", p99 {statistics.quantiles(late, n=100)[-1]:.0f} ms"
    print(line)


def new_turn() -> Admission:
    request_id = uuid.uuid4().hex
    return Admission(
        request_id=request_id,
        thread_id=f"thread-{request_id}",
        agent="a",
        digest="d",
        policy="queue",
        trigger="submit",
        submitted_at=time.time(),
        asked_at=time.time(),
        run_id="x",
        parts=[{"type": "text", "text": "hello"}],
    )


def delta(text: str) -> Event:
    return Event(TEXT_DELTA, {"id": "b", "delta": text})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
