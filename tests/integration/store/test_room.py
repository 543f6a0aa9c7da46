"""How many turns may wait, decided where they are admitted."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from everturn.errors import TooBusy
from everturn.store import room as rooms
from everturn.store.address import parse_address
from everturn.store.records import Room
from everturn.store.store import Store
from tests.integration.store.builders import admission, chunks, end

ROOM = Room(per_thread=2, per_tenant=3)


async def _begin(store: Store, request_id: str, thread_id: str = "t", **given: object) -> str:
    return (await store.begin(admission(request_id, thread_id, room=ROOM, **given))).outcome


async def test_a_thread_takes_as_many_waiting_turns_as_it_may_and_refuses_the_next(store: Store) -> None:
    assert [await _begin(store, f"r{n}") for n in range(4)] == ["run", "queued", "queued", "full"]
    ended = await store.ended("r3")
    assert ended is not None
    assert (ended.status, ended.message) == ("dropped", None)
    assert ended.error is not None
    assert ended.error.type == "TooBusy"
    assert "thread 't' has 2 queued turns and the limit is 2" in ended.error.message
    assert [chunk.type for chunk in await chunks(store, "r3")] == ["error"]
    assert len(await store.messages("t")) == 1


async def test_a_refused_turn_that_asks_again_is_refused_again_though_there_is_room_now(store: Store) -> None:
    outcomes = [await _begin(store, f"r{n}") for n in range(4)]
    await end(store, "r0")
    again = await store.begin(admission("r3", room=ROOM))
    assert (outcomes[-1], again.outcome, again.error is not None) == ("full", "full", True)
    assert await _begin(store, "r3", run_id="another") == "known"


async def test_a_turn_that_waits_already_keeps_its_place_when_it_asks_again(store: Store) -> None:
    for number in range(3):
        await _begin(store, f"r{number}")
    assert await _begin(store, "r2") == "queued"
    await end(store, "r0")
    assert [await _begin(store, "r1"), await _begin(store, "r4")] == ["run", "queued"]


async def test_the_draft_of_a_refused_turn_goes_with_it(store: Store, store_url: str) -> None:
    for number in range(3):
        await _begin(store, f"r{number}")
    await store.put_draft("r3", "d", [{"type": "text", "text": "large"}])
    assert await _begin(store, "r3", parts=None, draft=True) == "full"
    with create_engine(parse_address(store_url).url, poolclass=NullPool).begin() as connection:
        assert connection.scalar(text("SELECT count(*) FROM drafts")) == 0


async def test_a_tenant_has_one_limit_over_all_its_threads_and_others_have_their_own(store: Store) -> None:
    threads = [f"t{n}" for n in range(4)]
    outcomes = [await _begin(store, f"r{n}", thread, tenant_id="acme") for n, thread in enumerate(threads)]
    assert outcomes == ["run", "run", "run", "full"]
    assert await _begin(store, "r5", "other", tenant_id="else") == "run"
    assert await _begin(store, "r6", "another") == "run"
    await end(store, "r0")
    assert await _begin(store, "r7", "t3", tenant_id="acme") == "run"
    ended = await store.ended("r3")
    assert ended is not None
    assert ended.error is not None
    assert "tenant 'acme' has 3 unfinished turns and the limit is 3" in ended.error.message


async def test_of_turns_that_come_at_once_no_more_are_taken_than_there_is_room(store: Store) -> None:
    asked = [_begin(store, f"r{n}", f"t{n}", tenant_id="acme") for n in range(12)]
    outcomes = await asyncio.gather(*asked)
    assert sorted(outcomes) == ["full"] * 9 + ["run"] * 3


async def test_a_client_may_ask_before_it_sends(store: Store) -> None:
    await store.check_room("t", "acme", ROOM)
    for number in range(3):
        await _begin(store, f"r{number}", tenant_id="acme")
    with pytest.raises(TooBusy, match="thread 't' has 2 queued") as caught:
        await store.check_room("t", None, ROOM)
    assert (caught.value.scope, caught.value.name, caught.value.length, caught.value.limit) == ("thread", "t", 2, 2)
    with pytest.raises(TooBusy, match="tenant 'acme' has 3"):
        await store.check_room("another", "acme", ROOM)
    await store.check_room("another", "else", ROOM)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_the_counts_read_an_index_and_not_the_history_of_a_thread(store: Store, store_url: str) -> None:
    engine = create_engine(parse_address(store_url).url, poolclass=NullPool)
    with engine.begin() as connection:
        plans = {}
        for scope, statement in rooms._COUNTS.items():
            compiled = str(statement.compile(engine))
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", ("x",))
            plans[scope] = " ".join(str(row[-1]) for row in rows)
    assert "USING INDEX ix_turns_queued" in plans["thread"]
    assert "ix_turns_tenant_unfinished" in plans["tenant"]
