"""Stop rules, and what TurnConfig makes of stop conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from everturn import TurnConfig, Usage, has_tool_call, spent, step_count_is
from everturn.hooks.contexts import StepFacts
from everturn.hooks.stopping import StopRule
from everturn.turns import UsageSum


def met(rule: StopRule, **facts: Any) -> bool:
    given: dict[str, Any] = {"steps": 1, "called": [], "usage": Usage(), "seconds": 0.0, **facts}
    return rule.met(**given)


def test_has_tool_call_looks_at_the_tools_of_the_latest_step() -> None:
    rule = has_tool_call("final_*", "done")
    assert met(rule, called=["search", "final_answer"])
    assert met(rule, called=["done"])
    assert not met(rule, called=["search"])
    assert not met(rule)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (spent(tokens=1500, scope="thread"), "1,500 of 1,500 tokens"),
        (spent(tokens=1501, scope="thread"), None),
        (spent(cost=2.5, scope="user", window=timedelta(days=1)), "$2.50 of $2.50 in the last 1 day"),
        (spent(steps=4, scope="user", window=timedelta(minutes=90)), "5 of 4 model calls in the last 90 minutes"),
        (spent(seconds=6.1, scope="user", window=timedelta(seconds=2.5)), None),
        (
            spent(seconds=6, scope="user", window=timedelta(seconds=2.5)),
            "6.0 of 6.0 seconds of model calls in the last 2.5 seconds",
        ),
    ],
)
def test_a_shared_limit_says_what_was_used_of_it(rule: StopRule, words: str | None) -> None:
    assert rule.shared
    assert rule.excess(UsageSum(2, 5, Usage(1000, 500, cost=2.5), 6.0)) == words


def test_a_shared_limit_outlives_its_way_through_the_turns_settings() -> None:
    rule = spent(cost=1.0, scope="user", window=timedelta(hours=2))
    stored = TurnConfig(stop_when=rule).as_json()
    assert TurnConfig.model_validate(stored).stop_rules == [rule]


def test_step_count_is_is_met_from_that_step_on() -> None:
    assert [met(step_count_is(2), steps=steps) for steps in (1, 2, 3)] == [False, True, True]


def test_spent_is_met_when_any_of_its_limits_is_reached() -> None:
    assert met(spent(tokens=10), usage=Usage(6, 4))
    assert not met(spent(tokens=10), usage=Usage(6, 3))
    assert met(spent(cost=0.5), usage=Usage(cost=0.5))
    assert not met(spent(cost=0.5), usage=Usage(cost=None))
    assert met(spent(tokens=100, seconds=2.0), seconds=2.5)


@pytest.mark.parametrize(
    "make",
    [
        has_tool_call,
        spent,
        lambda: step_count_is(0),
        lambda: spent(tokens=0),
        lambda: spent(cost=-1.0),
        lambda: spent(seconds=float("nan")),
        lambda: spent(cost=1.0, window=timedelta(days=1)),
        lambda: spent(cost=1.0, scope="thread", window=timedelta()),
    ],
)
def test_a_rule_that_says_nothing_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="need"):
        make()


def enough(steps: Sequence[StepFacts]) -> bool:
    return len(steps) > 1


def test_conditions_add_up_over_hooks_and_survive_the_store() -> None:
    merged = TurnConfig(stop_when=step_count_is(3)).merged(TurnConfig(stop_when=[enough, step_count_is(3)]))
    again = TurnConfig.model_validate(merged.as_json())
    assert again.stop_rules == [step_count_is(3)]
    assert again.stop_checks == [f"{__name__}:enough"]


def test_tools_and_transforms_add_up_over_hooks_too() -> None:
    merged = TurnConfig(transforms=["a"], tools=[enough]).merged(TurnConfig(transforms=["b", "a"], tools=[met]))
    assert merged.transforms == ["a", "b"]
    assert merged.added_tools == [f"{__name__}:enough", f"{__name__}:met"]


@pytest.mark.parametrize("wrong", [3, {"steps": 1, "colour": 2}, lambda steps: True, [None]])
def test_a_condition_that_cannot_be_asked_is_refused_where_it_is_written(wrong: Any) -> None:
    with pytest.raises((ValidationError, TypeError)):
        TurnConfig(stop_when=wrong)
