"""Policies as text, and who may join whom."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.errors import BadInput
from everturn.policies import POLICIES, Debounce, debounce_seconds, may_be_joined, may_join, policy_text


def test_a_policy_travels_as_text() -> None:
    assert {policy_text(name) for name in POLICIES} == POLICIES
    assert policy_text(Debounce(2)) == policy_text("debounce:2") == policy_text("debounce:2.0") == "debounce:2"
    assert policy_text(Debounce(0.25)) == "debounce:0.25"


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Queue",
        "queue:2",
        "debounce",
        "debounce:",
        "debounce:soon",
        "debounce:0",
        "debounce:-1",
        "debounce:nan",
        "debounce:inf",
        "debounce:3601",
        None,
        2,
        ["queue"],
    ],
)
def test_what_is_no_policy_is_named(given: Any) -> None:
    with pytest.raises(BadInput, match="policy"):
        policy_text(given)


@pytest.mark.parametrize("seconds", [0, -1, 3600.1, float("nan"), "2", True, None])
def test_a_debounce_of_impossible_seconds_is_refused(seconds: Any) -> None:
    with pytest.raises(BadInput, match="seconds"):
        Debounce(seconds)


def test_only_debounce_waits() -> None:
    assert debounce_seconds("debounce:1.5") == 1.5
    assert [debounce_seconds(name) for name in POLICIES] == [None] * len(POLICIES)


def test_a_merged_message_joins_any_turn_and_a_debounced_one_only_its_like() -> None:
    assert {starting for starting in (*POLICIES, "debounce:1") if may_join("merge", starting)} == {
        *POLICIES,
        "debounce:1",
    }
    assert {starting for starting in (*POLICIES, "debounce:1") if may_join("debounce:9", starting)} == {"debounce:1"}
    assert {policy for policy in (*POLICIES, "debounce:1") if may_be_joined(policy)} == {"merge", "debounce:1"}
