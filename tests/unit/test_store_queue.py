"""The order of a thread's queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from everturn.store.queue import Waiting, ahead_of, first_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def waiting(name: str, second: int, after: str | None = None) -> Waiting:
    return Waiting(name, START + timedelta(seconds=second), after)


def test_submission_time_orders_and_the_id_breaks_ties() -> None:
    queue = [waiting("c", 1), waiting("b", 0), waiting("a", 1)]
    assert first_of(queue) == "b"
    assert [turn.request_id for turn in ahead_of(queue[0], queue[1:])] == ["b", "a"]


def test_a_turn_that_waits_for_me_is_not_ahead_of_me() -> None:
    me, follower, its_follower = waiting("me", 5), waiting("x", 1, "me"), waiting("y", 0, "x")
    assert ahead_of(me, [follower, its_follower]) == []
    assert first_of([me, follower, its_follower]) == "me"


def test_an_empty_queue_has_no_first() -> None:
    assert first_of([]) is None


def test_a_circle_is_broken_by_time() -> None:
    assert first_of([waiting("a", 1, "b"), waiting("b", 0, "a")]) == "b"


@given(
    st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 9))), min_size=1, max_size=10),
)
def test_every_queue_has_a_first_that_is_in_it(rows: list[tuple[int, int | None]]) -> None:
    queue = [waiting(f"r{n}", second, None if after is None else f"r{after}") for n, (second, after) in enumerate(rows)]
    order: list[str | None] = []
    while queue:
        first = first_of(queue)
        assert first in [turn.request_id for turn in queue]
        order.append(first)
        queue = [turn for turn in queue if turn.request_id != first]
    assert len(order) == len(rows)
