"""A database that says no, and rows that nobody of us has written."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from everturn.errors import StoreRefused, TranscriptDamaged
from everturn.store.store import Store
from tests.integration.store.builders import admission, end, run_turn

STRIKE = {
    "sqlite": ["CREATE TRIGGER strike BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, 'out on strike'); END"],
    "postgresql": [
        "CREATE FUNCTION strike() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'out on strike'; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER strike BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION strike()",
    ],
}


def execute(url: str, *statements: str) -> None:
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///"), timeout=10) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with psycopg.connect(url) as session:
        for statement in statements:
            session.execute(statement.encode())


async def test_what_the_database_refuses_is_told_with_its_words_and_nothing_of_it_is_stored(
    store: Store, store_url: str
) -> None:
    execute(store_url, *STRIKE["sqlite" if store_url.startswith("sqlite") else "postgresql"])
    with pytest.raises(StoreRefused, match="out on strike"):
        await store.begin(admission())
    assert await store.head("r0") is None


async def test_a_turn_can_end_without_the_message_that_the_database_refuses(store: Store, store_url: str) -> None:
    await store.begin(admission())
    execute(store_url, *STRIKE["sqlite" if store_url.startswith("sqlite") else "postgresql"])
    ended = await end(store, status="blocked", text="no", without_message=True)
    assert (ended.status, ended.message, ended.begun) == ("blocked", None, True)
    assert await store.running("t") is None


@pytest.mark.parametrize("parts", ["5", '["five"]', '{"type": "text"}'])
async def test_parts_that_are_none_are_a_damaged_transcript(store: Store, store_url: str, parts: str) -> None:
    await run_turn(store)
    await store.begin(admission("r1"))
    execute(store_url, f"UPDATE messages SET parts = '{parts}' WHERE role = 'assistant'")
    with pytest.raises(TranscriptDamaged, match=r"thread 't'.*parts of message"):
        await store.load_prompt("r1")


async def test_a_step_whose_parts_are_none_damages_the_end_of_its_turn_and_no_more(
    store: Store, store_url: str
) -> None:
    await store.begin(admission())
    await run_turn(store, "r2", "t2")
    execute(store_url, "UPDATE steps SET parts = '5', request_id = 'r0'")
    with pytest.raises(TranscriptDamaged, match="parts of step 0"):
        await end(store)
    assert (await end(store, without_message=True)).message is None
