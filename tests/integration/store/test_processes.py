"""Several processes on one store."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

from everturn.store.store import Store
from tests.integration.store.builders import admission, chunks, end, shown

SCRIPT = str(Path(__file__).parent / "processes.py")


async def start(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, SCRIPT, *arguments, stdout=pipe, stderr=pipe)


async def outcome(process: asyncio.subprocess.Process) -> bytes:
    """What a process printed; fails if it failed."""
    async with asyncio.timeout(90):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out


async def test_turns_of_several_processes_in_the_same_threads_keep_one_order(store: Store, store_url: str) -> None:
    processes = [await start("turns", store_url, f"p{n}", "12") for n in range(3)]
    for process in processes:
        await outcome(process)
    for number in range(3):
        messages = await store.messages(f"shared-{number}")
        pairs = [(m.request_id, m.role) for m in messages]
        assert len(pairs) == 24
        for user, assistant in zip(pairs[::2], pairs[1::2], strict=True):
            assert user == (assistant[0], "user")
            assert assistant[1] == "assistant"
    turns = await store.list_turns(limit=100)
    assert Counter(turn.status for turn in turns) == {"completed": 36}


async def test_a_tail_in_another_process_follows_while_this_one_reads_too(store: Store, store_url: str) -> None:
    await store.begin(admission())
    here = asyncio.create_task(chunks(store))
    reader = await start("tail", store_url, "r0", "0")
    writer = await start("stream", store_url, "r0", "300")
    assert await outcome(writer) == b"true\n"
    await end(store)
    there = [json.loads(line) for line in (await outcome(reader)).splitlines()]
    seen = await here
    assert [chunk.as_json() for chunk in seen] == there
    assert [chunk.seq for chunk in seen] == list(range(1, len(seen) + 1))
    assert shown(seen) == "".join(f"{number} " for number in range(300))


async def test_a_writer_killed_in_the_middle_leaves_a_readable_stream(store: Store, store_url: str) -> None:
    await store.begin(admission())
    writer = await start("stream", store_url, "r0", "100000")
    seen = 0
    async with asyncio.timeout(30):
        async for _ in store.tail("r0"):
            seen += 1
            if seen == 10:
                break
    writer.kill()
    await writer.wait()
    assert (await store.open_step("r0", 0, activity="m", try_=2)).attempt == 2
    ended = await end(store, status="aborted")
    found = await chunks(store)
    assert [chunk.seq for chunk in found] == list(range(1, len(found) + 1))
    assert found[-2].type == "data-reset"
    assert ended.message is None
