"""What the store's tests run in other processes: `python processes.py COMMAND URL …`."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from everturn.chunks import TEXT_DELTA, Event
from everturn.store.records import EventBatch
from everturn.store.store import Store
from tests.integration.store.builders import admission, run_turn


async def turns(url: str, name: str, count: int) -> None:
    """Runs whole turns in threads that other processes use too; a busy thread is waited for."""
    store = await Store.open(url)
    for number in range(count):
        request_id, thread_id = f"{name}-{number}", f"shared-{number % 3}"
        while (await store.begin(admission(request_id, thread_id, submitted_at=time.time()))).outcome == "queued":
            await asyncio.sleep(0.005)
        await run_turn(store, request_id, thread_id, submitted_at=0.0)
    await store.close()


async def stream(url: str, request_id: str, count: int) -> None:
    """Streams `count` numbers into a turn that is running, then says how it wrote."""
    store = await Store.open(url)
    opening = await store.open_step(request_id, 0, activity="m", try_=1)
    writer = store.writer(request_id, 0, opening.attempt)
    for number in range(count):
        writer.put(Event(TEXT_DELTA, {"id": "b", "delta": f"{number} "}))
        await asyncio.sleep(0.002)
    print(json.dumps(await writer.drain()))
    await store.append(EventBatch(request_id, [Event("text-end", {"id": "b"})], 0, opening.attempt))
    await store.close()


async def tail(url: str, request_id: str, after: int) -> None:
    """Prints the chunks of a turn as they come."""
    store = await Store.open(url)
    async for chunk in store.tail(request_id, after):
        print(json.dumps(chunk.as_json()), flush=True)
    await store.close()


def lock(url: str, seconds: float) -> None:
    """Holds SQLite's file in an exclusive transaction."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=10)
    connection.execute("BEGIN EXCLUSIVE")
    print("locked", flush=True)
    time.sleep(seconds)
    connection.execute("COMMIT")
    connection.close()


def main(command: str, url: str, *rest: str) -> None:
    if command == "lock":
        lock(url, float(rest[0]))
    else:
        asyncio.run({"turns": turns, "stream": stream, "tail": tail}[command](url, rest[0], int(rest[1])))


if __name__ == "__main__":
    main(*sys.argv[1:])
