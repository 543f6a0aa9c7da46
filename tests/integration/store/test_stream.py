"""The stream: numbered without gaps, tailed from anywhere, ended once."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing

import pytest

from everturn.chunks import TEXT_DELTA, Chunk, Event
from everturn.errors import BadInput, TurnNotFound
from everturn.store.records import EventBatch
from everturn.store.store import Store
from tests.integration.store.builders import LIMIT, admission, chunks, deltas, end, run_turn, shown, types


def delta(text: str, block: str = "b") -> Event:
    return Event(TEXT_DELTA, {"id": block, "delta": text})


async def opened(store: Store, request_id: str = "r0", thread_id: str = "t") -> None:
    await store.begin(admission(request_id, thread_id))
    await store.open_step(request_id, 0, activity="m", try_=1)


async def test_events_are_numbered_from_one_without_gaps(store: Store) -> None:
    await opened(store)
    for number in range(10):
        assert await store.append(EventBatch("r0", [delta(f"{number}a"), delta(f"{number}b")], 0, 1))
    await end(store)
    assert [c.seq for c in await chunks(store)] == list(range(1, 23))


async def test_concurrent_appends_keep_the_order_of_each_and_leave_no_gap(store: Store) -> None:
    await opened(store)
    writers = [store.writer("r0", None, None) for _ in range(10)]

    async def write(number: int) -> None:
        for piece in range(20):
            writers[number].put(delta(f"{piece},", block=str(number)))
            await asyncio.sleep(0)
            assert await store.append(EventBatch("r0", [Event("data-x", {"n": piece, "w": number})]))
        assert await writers[number].drain()

    await asyncio.gather(*(write(number) for number in range(10)))
    await end(store)
    found = await chunks(store)
    assert [c.seq for c in found] == list(range(1, len(found) + 1))
    for number in range(10):
        said = "".join(c.data["delta"] for c in found if c.type == TEXT_DELTA and c.data["id"] == str(number))
        assert said == "".join(f"{piece}," for piece in range(20))
        assert [c.data["n"] for c in found if c.data.get("w") == number] == list(range(20))


async def test_appending_to_an_unknown_turn_fails_and_its_writer_is_fenced(store: Store) -> None:
    with pytest.raises(TurnNotFound, match="r9"):
        await store.append(EventBatch("r9", [delta("x")]))
    writer = store.writer("r9", None, None)
    writer.put(delta("x"))
    assert not await writer.drain()


async def test_one_bad_writer_does_not_harm_the_others_of_its_group(store: Store) -> None:
    await opened(store)
    good, bad = store.writer("r0", 0, 1), store.writer("r9", 0, 1)
    for number in range(50):
        bad.put(delta("lost"))
        good.put(delta(f"{number} \ud800\x00"))
        await asyncio.sleep(0.001)
    assert await good.drain()
    assert not await bad.drain()
    await end(store)
    assert shown(await chunks(store)) == "".join(f"{number} \ufffd\ufffd" for number in range(50))


async def test_put_from_another_thread_is_written(store: Store) -> None:
    await opened(store)
    writer = store.writer("r0", None, None)
    await asyncio.to_thread(writer.put, Event("data-tool-progress", {"toolCallId": "c", "value": 1}))
    assert await writer.drain()
    await end(store)
    assert "data-tool-progress" in types(await chunks(store))


async def test_deltas_are_merged_and_the_first_is_seen_at_once(store_url: str) -> None:
    store = await Store.open(store_url, flush=60)
    await opened(store)
    writer = store.writer("r0", 0, 1)
    writer.put(Event("text-start", {"id": "b"}))
    writer.put(delta("first "))
    seen: list[Chunk] = []
    async with asyncio.timeout(LIMIT):
        async for chunk in store.tail("r0"):
            seen.append(chunk)
            if chunk.type == TEXT_DELTA:
                break
    for number in range(100):
        writer.put(delta(f"{number} "))
    assert await writer.drain()
    await end(store)
    texts = [c.data["delta"] for c in await chunks(store) if c.type == TEXT_DELTA]
    assert texts == ["first ", "".join(f"{number} " for number in range(100))]
    await store.close()


async def test_a_hundred_streams_share_their_commits(store_url: str) -> None:
    store = await Store.open(store_url)
    for number in range(100):
        await opened(store, f"r{number}", f"t{number}")

    async def write(number: int) -> None:
        writer = store.writer(f"r{number}", 0, 1)
        for piece in range(50):
            writer.put(delta(f"{piece} "))
            await asyncio.sleep(0.02)
        assert await writer.drain()
        await end(store, f"r{number}")

    tails = [asyncio.create_task(chunks(store, f"r{number}")) for number in range(100)]
    await asyncio.gather(*(write(number) for number in range(100)))
    expected = "".join(f"{piece} " for piece in range(50))
    for found in await asyncio.gather(*tails):
        assert shown(found) == expected
        assert [c.seq for c in found] == list(range(1, len(found) + 1))
    await store.close()


async def test_closing_the_store_writes_what_waits(store_url: str) -> None:
    store = await Store.open(store_url, flush=1.0)
    await opened(store)
    writer = store.writer("r0", 0, 1)
    writer.put(delta("a"))
    assert await writer.drain()
    writer.put(delta("b"))
    await store.close()
    store = await Store.open(store_url)
    await end(store)
    assert shown(await chunks(store)) == "ab"
    await store.close()


async def test_a_tail_waits_for_a_turn_that_does_not_exist_yet(store: Store) -> None:
    tail = asyncio.create_task(chunks(store))
    await asyncio.sleep(0.1)
    await run_turn(store)
    assert types(await tail)[0] == "start"


async def test_a_tail_can_resume_after_any_number(store: Store) -> None:
    await run_turn(store)
    whole = await chunks(store)
    for after in range(len(whole) + 1):
        assert await chunks(store, after=after) == whole[after:]
    assert await chunks(store, after=1000) == []


async def test_a_tail_of_a_running_turn_resumes_where_it_broke_off(store: Store) -> None:
    await opened(store)
    seen: list[Chunk] = []
    for number in range(5):
        await store.append(EventBatch("r0", [delta(f"{number}")], 0, 1))
        async with asyncio.timeout(LIMIT):
            async for chunk in store.tail("r0", after=len(seen)):
                seen.append(chunk)
                if chunk.type == TEXT_DELTA:
                    break
    rest = asyncio.create_task(chunks(store, after=len(seen)))
    await end(store)
    seen += await rest
    assert [c.seq for c in seen] == list(range(1, 8))
    assert shown(seen) == "01234"


async def test_numbers_that_cannot_be_are_refused(store: Store) -> None:
    await opened(store)
    with pytest.raises(BadInput, match="-1"):
        await chunks(store, after=-1)
    with pytest.raises(BadInput, match="beyond the last chunk"):
        await chunks(store, after=50)


async def test_many_readers_of_one_turn_see_the_same(store: Store) -> None:
    await opened(store)
    tails = [asyncio.create_task(chunks(store)) for _ in range(30)]
    for number in range(20):
        await store.append(EventBatch("r0", [delta(f"{number} ")], 0, 1))
    await end(store)
    found = await asyncio.gather(*tails)
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_on_linux_the_kernel_tells_a_sqlite_tail_of_other_processes_commits(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform == "linux":
        for pause in ("FAST", "SLOW"):  # between two looks of its own: by these it would never come to the end
            monkeypatch.setattr(f"everturn.store.watch.{pause}", 3600.0)
    writing, reading = await Store.open(store_url), await Store.open(store_url)
    await opened(writing)
    async with asyncio.timeout(LIMIT), aclosing(reading.tail("r0")) as tail:
        assert (await anext(tail)).type == "start"
        for number in range(5):
            await writing.append(EventBatch("r0", [delta(f"{number}")], 0, 1))
            assert (await anext(tail)).data["delta"] == str(number)
        await end(writing)
        assert (await anext(tail)).is_end
    for store in (reading, writing):
        await store.close()


async def test_a_slow_reader_gets_everything_with_bounded_memory(store: Store) -> None:
    await opened(store)
    for _ in range(8):
        await store.append(EventBatch("r0", [delta("x") for _ in range(500)], 0, 1))
    await end(store)
    seen, most = 0, 0
    async with asyncio.timeout(60):
        async for chunk in store.tail("r0"):
            seen += 1
            assert chunk.seq == seen
            if seen % 400 == 0:
                await asyncio.sleep(0.02)
                [subscription] = store._hub._subscriptions.values()
                most = max(most, subscription.delivered - subscription.taken)
    assert seen == 4002
    assert most <= 1500


async def test_wait_end_returns_the_ending(store: Store) -> None:
    waits = [asyncio.create_task(store.wait_end("r0")) for _ in range(3)]
    await asyncio.sleep(0.05)
    ended = await run_turn(store)
    async with asyncio.timeout(LIMIT):
        assert await asyncio.gather(*waits) == [ended] * 3
        assert await store.wait_end("r0") == ended


async def test_closing_ends_the_tails_with_an_error(store_url: str) -> None:
    from everturn.errors import StoreUnavailable

    store = await Store.open(store_url)
    await opened(store)
    tail = asyncio.create_task(chunks(store))
    await asyncio.sleep(0.1)
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await tail


async def test_a_pruned_stream_is_told_again_from_the_message(store: Store) -> None:
    await opened(store)
    await store.append(EventBatch("r0", deltas(*"the answer"), 0, 1))
    await end(store, status="aborted", reason="stop")
    last = (await chunks(store))[-1]
    await opened(store, "r1", "other")
    assert await store.prune_events(3600) == 0
    assert await store.prune_events(-1) == last.seq - 1
    assert await store.prune_events(-1) == 0
    found = await chunks(store)
    assert types(found) == ["start", "text-start", "text-delta", "text-end", "abort"]
    assert found[0].data == {"messageId": "r0:assistant", "requestId": "r0", "threadId": "t"}
    assert found[2].data["delta"] == "the answer"
    assert found[-1] == last
    assert await chunks(store, after=4) == [last]
    assert await chunks(store, after=last.seq) == []
    assert len(await store.messages("t")) == 2
    await end(store, "r1")
    assert types(await chunks(store, "r1")) == ["start", "finish"]


async def test_pruning_takes_a_few_turns_at_a_time(store: Store) -> None:
    for number in range(5):
        await run_turn(store, f"r{number}", f"t{number}")
    rounds = [await store.prune_events(-1, limit=2) for _ in range(4)]
    assert [deleted > 0 for deleted in rounds] == [True, True, True, False]
