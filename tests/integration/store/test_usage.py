"""Sums of what threads and users have used, for budgets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from everturn.errors import TurnNotFound
from everturn.store.store import Store
from everturn.turns import Principal, Usage, UsageSum
from tests.integration.store.builders import admission, run_turn

ANN, BEN = Principal("ann"), Principal("ben")
ONE = Usage(10, 5, 2, 1, 0.25)


def times(count: int) -> UsageSum:
    """What so many turns of the builder use."""
    used = Usage(10 * count, 5 * count, 2 * count, count, 0.25 * count)
    return UsageSum(count, count, used, 0.04 * count)


async def test_a_thread_sums_up_its_own_turns(store: Store) -> None:
    for request, thread in (("r0", "a"), ("r1", "b"), ("r2", "a")):
        await run_turn(store, request, thread)
    assert await store.usage_sum("r2", "thread") == times(2)
    assert await store.usage_sum("r1", "thread") == times(1)


async def test_a_user_sums_up_the_turns_of_its_id_within_its_tenant(store: Store) -> None:
    asked: list[dict[str, Any]] = [
        {"principal": ANN, "tenant_id": "x"},
        {"principal": ANN, "tenant_id": "x"},
        {"principal": ANN, "tenant_id": "y"},
        {"principal": BEN, "tenant_id": "x"},
        {"principal": ANN},
        {},
        {"principal": Principal()},
    ]
    for number, given in enumerate(asked):
        await run_turn(store, f"r{number}", f"t{number}", **given)
    counts = [(await store.usage_sum(f"r{number}", "user")).turns for number in range(len(asked))]
    assert counts == [2, 2, 1, 1, 1, 2, 2]
    assert await store.usage_sum("r0", "user") == times(2)


async def test_a_window_counts_turns_submitted_in_it_and_always_the_one_that_asks(store: Store) -> None:
    for number in range(4):  # submitted at 1,000,000 + number seconds
        await run_turn(store, f"r{number}", principal=ANN)
    since = datetime.fromtimestamp(1_000_002, UTC)
    assert (await store.usage_sum("r3", "thread", since)).turns == 2
    assert (await store.usage_sum("r0", "user", since)).turns == 3


async def test_a_turn_that_runs_counts_with_its_finished_steps(store: Store) -> None:
    await store.begin(admission())
    assert await store.usage_sum("r0", "thread") == UsageSum(turns=1)


async def test_an_unknown_turn_has_no_usage(store: Store) -> None:
    with pytest.raises(TurnNotFound):
        await store.usage_sum("r0", "user")


@pytest.mark.parametrize(
    ("where", "index"),
    [
        ("principal_id = 'ann' AND tenant_id IS NULL AND submitted_at >= '2024-01-01'", "ix_turns_principal_submitted"),
        ("thread_id = 't' AND submitted_at >= '2024-01-01'", "ix_turns_thread_submitted"),
    ],
)
async def test_the_sums_have_an_index(sqlite_template: Path, where: str, index: str) -> None:
    """On SQLite, which needs no statistics for its choice."""
    with create_engine(f"sqlite:///{sqlite_template}", poolclass=NullPool).begin() as connection:
        plan = connection.execute(text(f"EXPLAIN QUERY PLAN SELECT sum(input_tokens) FROM turns WHERE {where}"))
        assert index in str(plan.all())
