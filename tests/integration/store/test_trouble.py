"""A store that is locked, cut or down for a while."""

from __future__ import annotations

import asyncio
import time

import pytest
from psycopg import sql

from everturn.chunks import TEXT_DELTA, Event
from everturn.errors import StoreUnavailable
from everturn.store.records import EventBatch
from everturn.store.store import Store
from tests.integration.store.builders import LIMIT, admission, call, chunks, end, record, run_turn, shown
from tests.integration.store.test_processes import start
from tests.services.postgres import PostgresService


def database_of(url: str) -> str:
    return url.rpartition("/")[2].partition("?")[0] if "?" not in url else url.partition("?")[0].rpartition("/")[2]


def cut(service: PostgresService, url: str, query: str = "%") -> int:
    """Terminates the connections to a database whose last query was like `query`."""
    with service.connect() as connection:
        found = connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s AND query LIKE %s",
            (database_of(url), query),
        ).fetchone()
    assert found is not None
    return int(found[0])


about_postgres = pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
about_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@about_sqlite
async def test_writes_wait_for_a_file_that_another_process_has_locked(store: Store, store_url: str) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    tail = asyncio.create_task(chunks(store))
    locker = await start("lock", store_url, "5")
    assert locker.stdout is not None
    assert await locker.stdout.readline() == b"locked\n"
    begun = time.monotonic()
    writer = store.writer("r0", 0, 1)
    for number in range(100):
        writer.put(Event(TEXT_DELTA, {"id": "b", "delta": f"{number} "}))
        await asyncio.sleep(0.01)
    assert (await store.head("r0")) is not None  # readers are not blocked
    assert await writer.drain()
    assert await store.commit_step(record(), [])
    assert time.monotonic() - begun > 3
    await end(store)
    assert shown(await tail) == "".join(f"{number} " for number in range(100))
    await locker.wait()


@about_sqlite
async def test_a_lock_that_stays_ends_in_a_clear_error(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.begin(admission())
    locker = await start("lock", store_url, "30")
    assert locker.stdout is not None
    await locker.stdout.readline()
    writer = store.writer("r0", None, None)
    writer.put(Event(TEXT_DELTA, {"id": "b", "delta": "x"}))
    async with asyncio.timeout(25):
        with pytest.raises(StoreUnavailable, match="database is locked"):
            await store.merge_state("r0", {})
        with pytest.raises(StoreUnavailable, match="database is locked"):
            await writer.drain()
    locker.kill()
    await locker.wait()
    await store.merge_state("r0", {"now": "it works"})


@about_postgres
async def test_every_write_survives_connections_that_are_cut(
    postgres: PostgresService, store: Store, store_url: str
) -> None:
    tails = [asyncio.create_task(chunks(store, f"r{n}")) for n in range(20)]
    turns = [asyncio.create_task(_whole_turn(store, f"r{n}", f"t{n}")) for n in range(20)]
    while not all(turn.done() for turn in turns):
        cut(postgres, store_url)
        await asyncio.sleep(0.15)
    await asyncio.gather(*turns)
    for found in await asyncio.gather(*tails):
        assert [c.seq for c in found] == list(range(1, len(found) + 1))
        assert shown(found) == "".join(f"{number} " for number in range(30))
        assert sum(c.type == "data-x" for c in found) == 30


async def _whole_turn(store: Store, request_id: str, thread_id: str) -> None:
    assert (await store.begin(admission(request_id, thread_id))).outcome == "run"
    await store.open_step(request_id, 0, activity="m", try_=1)
    writer = store.writer(request_id, 0, 1)
    for number in range(30):
        writer.put(Event(TEXT_DELTA, {"id": "b", "delta": f"{number} "}))
        assert await store.append(EventBatch(request_id, [Event("data-x", {"n": number})], 0, 1))
        await asyncio.sleep(0.03)
    assert await writer.drain()
    assert await store.commit_step(record(request_id, calls=[call()]), [])
    await store.open_call(request_id, "c0", idempotent=True, activity="c", try_=1)
    await store.settle_call(request_id, call(state="done", output=1), [])
    ended = await end(store, request_id)
    assert (ended.status, ended.steps) == ("completed", 1)


@about_postgres
async def test_the_listener_comes_back_after_it_was_cut(
    postgres: PostgresService, store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everturn.store.watch.SAFETY", 3600.0)  # news come from the listener or not at all
    await store.begin(admission())
    other = await Store.open(store_url)
    tail = asyncio.create_task(chunks(other))
    await _until_listening(postgres, store_url)
    assert cut(postgres, store_url, "LISTEN%") == 1
    await store.append(EventBatch("r0", [Event("data-x", {"n": 1})]))
    await _until_listening(postgres, store_url)
    await end(store)
    assert [c.type for c in await asyncio.wait_for(tail, 20)] == ["start", "data-x", "finish"]
    await other.close()


async def _until_listening(service: PostgresService, url: str) -> None:
    query = sql.SQL("SELECT count(*) FROM pg_stat_activity WHERE datname = {} AND query LIKE 'LISTEN%'")
    async with asyncio.timeout(LIMIT):
        while True:
            with service.connect() as connection:
                found = connection.execute(query.format(database_of(url))).fetchone()
            if found == (1,):
                return
            await asyncio.sleep(0.02)


async def test_a_group_that_was_committed_unknowingly_is_not_written_twice(store: Store) -> None:
    from everturn.store.events import prepare_batch
    from everturn.store.group import GroupWrite

    await store.begin(admission())
    write = GroupWrite([prepare_batch(EventBatch("r0", [Event("data-x", {"n": 1})]))])
    assert await store._transactions.write(write) == [True]
    assert await store._transactions.write(write) == [True]
    await end(store)
    assert [c.type for c in await chunks(store)] == ["start", "data-x", "finish"]


@about_postgres
async def test_reads_of_a_store_that_vanished_fail_in_time(postgres: PostgresService, store_url: str) -> None:
    store = await Store.open(store_url, timeout=1.0)
    await run_turn(store)
    waiting = asyncio.create_task(store.wait_end("r9"))
    await asyncio.sleep(0.2)
    with postgres.connect() as connection:
        name = sql.Identifier(database_of(store_url))
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        cut(postgres, store_url)
        try:
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable, match="not currently accepting connections"):
                await store.head("r0")
            assert time.monotonic() - begun < 5
            async with asyncio.timeout(30):
                with pytest.raises(StoreUnavailable):
                    await waiting
        finally:
            connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
    assert await store.head("r0") is not None
    await store.close()
