"""Turn code in the store: versions, who and when, and the one that a turn keeps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from everturn.errors import CodeNotFound, TurnNotFound
from everturn.store.records import HookTrace
from everturn.store.store import Store
from tests.integration.store.builders import admission, run_turn


async def test_each_text_is_a_new_version_with_its_author_and_time(store: Store) -> None:
    first = await store.set_code("support", "one", "ann")
    second = await store.set_code("support", "two", "bob")
    assert [(code.version, code.source, code.author) for code in (first, second)] == [
        (1, "one", "ann"),
        (2, "two", "bob"),
    ]
    age = datetime.now(UTC) - datetime.fromisoformat(first.created_at)
    assert timedelta() <= age < timedelta(minutes=1)
    assert await store.code("support") == second
    assert await store.code("support", 1) == first
    assert await store.code_versions("support") == [second, first]
    assert await store.code_versions("other") == []


@pytest.mark.parametrize("source", ["same", "with \0 and \ud800"])
async def test_the_same_text_again_changes_nothing(store: Store, source: str) -> None:
    first = await store.set_code("support", source, "ann")
    assert await store.set_code("support", source, "bob") == first


async def test_many_writers_at_once_lose_no_version(store: Store) -> None:
    stored = await asyncio.gather(*(store.set_code("support", f"text {n}", "ann") for n in range(8)))
    assert sorted(code.version for code in stored) == list(range(1, 9))
    assert {code.source for code in await store.code_versions("support")} == {f"text {n}" for n in range(8)}


async def test_a_removed_code_stays_stored_and_a_later_one_gets_the_next_number(store: Store) -> None:
    await store.set_code("support", "one", "ann")
    removed = await store.remove_code("support", "bob")
    assert (removed.version, removed.removed_by, removed.removed_at is not None) == (1, "bob", True)
    assert await store.remove_code("support", "eve") == removed
    with pytest.raises(CodeNotFound, match="no active turn code"):
        await store.code("support")
    assert await store.code("support", 1) == removed
    assert (await store.set_code("support", "one", "ann")).version == 2


async def test_what_is_not_there_is_said(store: Store) -> None:
    with pytest.raises(CodeNotFound, match="everturn hooks log support"):
        await store.remove_code("support", "ann")
    with pytest.raises(CodeNotFound, match="version 3"):
        await store.code("support", 3)
    with pytest.raises(TurnNotFound):
        await store.pin_code("nobody")


async def test_a_turn_keeps_the_version_that_was_active_when_it_asked_first(store: Store) -> None:
    for request_id in ("r0", "r1", "r2"):
        await store.begin(admission(request_id, request_id))
    assert await store.pin_code("r0") is None
    one = await store.set_code("support", "one", "ann")
    assert await store.pin_code("r0") is None
    assert await store.pin_code("r1") == one
    two = await store.set_code("support", "two", "ann")
    assert await store.pin_code("r1") == one
    await store.remove_code("support", "ann")
    assert (await store.pin_code("r1")) == one
    assert await store.pin_code("r2") is None
    assert two.version == 2


async def test_runs_are_those_of_the_agents_stored_code_the_newest_first(store: Store) -> None:
    for number, agent in enumerate(("support", "support", "other")):
        await run_turn(store, f"r{number}", f"t{number}", agent=agent)
        await store.set_code(agent, f"text {number}", "ann")
        code = await store.pin_code(f"r{number}")
        assert code is not None
        traces = [
            HookTrace(f"r{number}", "before_turn", "agent", "ok", 1),
            HookTrace(f"r{number}", "before_turn", f"turn-code@{code.version}", "error", 5, message=f"failed {number}"),
        ]
        await store.record_traces(traces)
    runs = await store.code_runs("support")
    assert [(run.request_id, run.version, run.message) for run in runs] == [
        ("r1", 2, "failed 1"),
        ("r0", 1, "failed 0"),
    ]
    assert [run.request_id for run in await store.code_runs("support", 1)] == ["r1"]
