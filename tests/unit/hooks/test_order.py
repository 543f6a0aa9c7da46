"""The order of an agent's added hooks."""

from __future__ import annotations

import pytest

from everturn import Hooks, InvalidAgent, Order
from everturn.hooks.order import ordered


def hook(name: str, **order: str | list[str]) -> Hooks:
    made = Hooks()
    made.name, made.order = name, Order(**order)
    return made


def names(*hooks: Hooks) -> list[str]:
    return [found.label for found in ordered("agent", hooks)]


def test_hooks_without_constraints_keep_the_order_of_the_list() -> None:
    assert names(hook("c"), hook("a"), hook("b")) == ["c", "a", "b"]


def test_before_and_after_move_hooks_and_leave_the_others_in_place() -> None:
    assert names(hook("a", after="c"), hook("b"), hook("c")) == ["b", "c", "a"]
    assert names(hook("a"), hook("b"), hook("c", before=["a"])) == ["b", "c", "a"]


def test_a_constraint_on_a_hook_that_is_not_there_changes_nothing() -> None:
    assert names(hook("a", after="gone"), hook("b", before="gone")) == ["a", "b"]


@pytest.mark.parametrize(
    "hooks",
    [
        [hook("a", before="b"), hook("b", before="a")],
        [hook("a", after="a")],
        [hook("a", after="b"), hook("b", after="c"), hook("c", after="a")],
        [hook("a", before="b", after="b"), hook("b")],
    ],
)
def test_a_cycle_is_an_invalid_agent_and_the_message_names_agent_and_hooks(hooks: list[Hooks]) -> None:
    with pytest.raises(InvalidAgent, match=r"agent 'agent'.*contradicts itself") as caught:
        ordered("agent", hooks)
    assert all(found.label in str(caught.value) for found in hooks if found.order != Order())


def test_two_hooks_of_one_name_are_an_invalid_agent() -> None:
    with pytest.raises(InvalidAgent, match="two hooks named 'a'"):
        ordered("agent", [hook("a"), hook("a")])
