"""The order of a thread's queue."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from everturn.store.queue import Waiting, ahead_of, came_later, first_of, hold_until, joiners_of, superseder_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def waiting(name: str, second: float, after: str | None = None, policy: str = "queue") -> Waiting:
    return Waiting(name, START + timedelta(seconds=second), after, policy)


def names(turns: list[Waiting]) -> list[str]:
    return [turn.request_id for turn in turns]


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


def test_what_a_client_says_of_its_own_two_turns_counts_more_than_clocks() -> None:
    first, second = waiting("first", 5), waiting("second", 1, after="first")
    assert came_later(second, first)
    assert not came_later(first, second)


def test_only_a_later_latest_turn_supersedes_and_the_newest_of_several_is_named() -> None:
    me = waiting("me", 1)
    earlier, later = waiting("e", 0, policy="latest"), [waiting(f"l{n}", n, policy="latest") for n in (2, 3)]
    assert superseder_of(me, [earlier, waiting("q", 9)]) is None
    found = superseder_of(me, [earlier, *later])
    assert found is not None
    assert found.request_id == "l3"


def test_those_that_join_stand_right_behind_without_another_between() -> None:
    me = waiting("me", 0)
    one, two, other, three = (
        waiting("one", 1, policy="merge"),
        waiting("two", 2, policy="merge"),
        waiting("other", 3),
        waiting("three", 4, policy="merge"),
    )
    assert names(joiners_of(me, [three, two, other, one])) == ["one", "two"]
    assert names(joiners_of(me, [waiting("d", 1, policy="debounce:1"), two])) == []
    debounced = waiting("me", 0, policy="debounce:1")
    assert names(joiners_of(debounced, [waiting("d", 1, policy="debounce:1"), two])) == ["d", "two"]


def test_nothing_joins_a_continuation_and_no_continuation_joins() -> None:
    me, follower = waiting("me", 0), waiting("f", 1, policy="merge")
    assert joiners_of(replace(me, takes_messages=False), [follower]) == []
    assert joiners_of(me, [replace(follower, takes_messages=False)]) == []


def test_each_further_message_prolongs_the_wait_up_to_ten_times_its_seconds() -> None:
    def until(policy: str, *later: Waiting) -> float | None:
        end = hold_until(waiting("me", 0, policy=policy), later)
        return None if end is None else (end - START).total_seconds()

    assert until("merge") is None
    assert until("debounce:2") == 2
    assert until("debounce:2", waiting("d", 1.5, policy="debounce:2")) == 3.5
    assert until("debounce:2", waiting("d", 1.5, policy="debounce:0.1")) == 2
    assert until("debounce:2", waiting("m", 1, policy="merge")) == 3
    assert until("debounce:2", waiting("d", 19.5, policy="debounce:2")) == 20
