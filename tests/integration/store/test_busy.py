"""More work than the store's connections can do: an end to the waiting, and a clear error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import Connection, text

from everturn.errors import StoreUnavailable
from everturn.store.store import Store
from tests.integration.store.builders import admission

HELD = 20.0
"""Seconds after which a connection is given back whatever a test does."""


@pytest_asyncio.fixture
async def narrow(store_url: str, store: Store) -> AsyncIterator[Store]:
    """A store with a single connection (on SQLite: one for reads), and little patience."""
    opened = await Store.open(store_url, timeout=0.3, connections=1)
    yield opened
    await opened.close()


async def test_a_read_that_finds_no_free_connection_fails_in_time_and_says_what_to_do(narrow: Store) -> None:
    held, release = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        connection.execute(text("SELECT 1"))
        held.set()
        release.wait(HELD)

    holding = asyncio.create_task(narrow._transactions.read(hold))
    await asyncio.to_thread(held.wait, HELD)
    with pytest.raises(StoreUnavailable, match=r"busy for 0\.\d s; raise EVERTURN_STORE_CONNECTIONS"):
        await narrow.head("r0")
    release.set()
    await holding
    assert await narrow.head("r0") is None


async def test_a_write_that_has_begun_is_waited_for_and_not_given_up(narrow: Store) -> None:
    def slow(connection: Connection) -> int:
        connection.execute(text("SELECT 1"))
        threading.Event().wait(0.6)
        return 1

    assert await narrow._transactions.write(slow, patience=0.1) == 1


async def test_work_that_was_given_up_never_runs(narrow: Store) -> None:
    held, release = threading.Event(), threading.Event()
    ran: list[str] = []

    def hold(_: Connection) -> None:
        held.set()
        release.wait(HELD)

    holding = asyncio.create_task(narrow._transactions.write(hold))
    await asyncio.to_thread(held.wait, HELD)
    with pytest.raises(StoreUnavailable, match="busy"):
        await narrow._transactions.write(lambda _: ran.append("late"), patience=0.1)
    release.set()
    await holding
    assert (await narrow.begin(admission())).outcome == "run"
    assert ran == []


async def test_as_many_transactions_run_at_once_as_there_are_connections(store_url: str, store: Store) -> None:
    opened = await Store.open(store_url, connections=5)
    together = threading.Barrier(5, timeout=HELD)
    try:
        await asyncio.gather(*(opened._transactions.read(lambda _: together.wait()) for _ in range(5)))
    finally:
        await opened.close()


async def test_a_caller_that_is_cancelled_while_it_waits_is_cancelled(narrow: Store) -> None:
    release = threading.Event()
    holding = asyncio.create_task(narrow._transactions.write(lambda _: release.wait(HELD)))
    waiting = asyncio.create_task(narrow._transactions.write(lambda _: None, patience=HELD))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    await holding
