"""What a worker refuses when it starts, and what it knows of an agent afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Agent, Hooks, InvalidAgent, Model, Order, UnknownAgent, tool
from everturn.hooks.points import HOOK_POINTS
from everturn.hooks.registry import AgentRegistry, RegisteredAgent, tool_patterns


def registered(hooks: list[Any] | None = None, base: type[Agent] = Agent, **attributes: Any) -> RegisteredAgent:
    agent = type("Made", (base,), {"name": "made", "model": "demo", "hooks": hooks or [], **attributes})()
    return AgentRegistry([agent]).get("made")


class Audit(Hooks):
    def before_turn(self, ctx: Any) -> None: ...
    def before_tool_call(self, ctx: Any) -> None: ...


class Other(Hooks):
    def before_turn(self, ctx: Any) -> None: ...


class Own(Agent):
    async def before_turn(self, ctx: Any) -> None: ...
    async def on_turn_end(self, result: Any) -> None: ...


def test_the_agents_own_methods_come_first_then_its_hooks_in_list_order() -> None:
    assert registered([Audit(), Other()], base=Own).manifest == {
        "before_turn": ["agent", "Audit", "Other"],
        "before_tool_call": ["Audit"],
        "on_turn_end": ["agent"],
    }


def test_a_point_that_nobody_implements_is_not_in_the_manifest() -> None:
    assert registered([Hooks()]).manifest == {}


def test_every_point_of_the_contract_is_known() -> None:
    methods = {point: lambda self, *arguments: None for point in HOOK_POINTS}
    assert list(registered([type("All", (Hooks,), methods)()]).manifest) == list(HOOK_POINTS)


def test_a_chain_holds_only_what_the_manifest_of_the_turn_names() -> None:
    agent = registered([Audit(), Other()], base=Own)
    assert [hook.name for hook in agent.chain("before_turn", ["agent", "Other", "gone"])] == ["agent", "Other"]


def test_tool_matchers_choose_the_calls_that_a_hook_sees() -> None:
    guard = Audit()
    guard.tools = {"delete_*", "drop"}
    agent = registered([guard])
    for name, seen in (("delete_user", True), ("drop", True), ("drop_all", False), ("Delete_x", False)):
        assert bool(agent.chain("before_tool_call", ["Audit"], name)) is seen
    assert sorted(tool_patterns(agent.chain("before_tool_call", ["Audit"])) or []) == ["delete_*", "drop"]


def test_one_hook_without_a_matcher_sees_every_tool() -> None:
    guard, everything = Audit(), Audit()
    guard.tools, everything.name = {"delete_*"}, "Everything"
    assert tool_patterns(registered([guard, everything]).chain("before_tool_call", ["Audit", "Everything"])) is None


def with_options(**options: Any) -> Hooks:
    return type("Odd", (Audit,), options)()


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (Audit, "is no Hooks object"),
        (lambda ctx: None, "is no Hooks object"),
        (with_options(name="agent"), "may not be named 'agent'"),
        (with_options(on_error="contine"), "on_error='contine'; use one of continue, raise, deny"),
        (with_options(timeout=0), "timeout is 0"),
        (with_options(tools="delete_*"), "give a set of patterns"),
        (with_options(before_turn=lambda self: None), "Odd.before_turn must take 1 argument besides self"),
        (with_options(on_chunk=lambda self, chunk: None), "Odd.on_chunk must take 2 arguments besides self"),
        (with_options(order=Order(before="Odd")), "contradicts itself"),
    ],
)
def test_a_hook_that_cannot_run_is_refused_with_the_agents_name(hook: Any, said: str) -> None:
    with pytest.raises(InvalidAgent) as caught:
        registered([hook])
    assert "agent 'made'" in str(caught.value)
    assert said in str(caught.value)


def test_two_hooks_of_one_class_need_names() -> None:
    with pytest.raises(InvalidAgent, match="two hooks named 'Audit'"):
        registered([Audit(), Audit()])


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"name": ""}, "the name of agent Made"),
        ({"model": ""}, "has no model"),
        ({"model": Model("  ")}, "has no model"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"tools": ["get_weather"]}, "neither a function nor a Tool"),
    ],
)
def test_an_agent_that_cannot_run_is_refused(attributes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidAgent, match=said):
        registered(**attributes)


def no_hint(city) -> None:  # type: ignore[no-untyped-def]  # the fault under test
    """Has no type hint."""


def variadic(*cities: str) -> None:
    """Takes any number."""


def unresolved(city: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821 - the fault under test
    """Names a type that does not exist."""


@pytest.mark.parametrize("function", [no_hint, variadic, unresolved])
def test_a_tool_that_cannot_be_described_is_refused_with_the_names_of_agent_and_tool(function: Any) -> None:
    with pytest.raises(InvalidAgent) as caught:
        registered(tools=[function])
    assert "agent 'made'" in str(caught.value)
    assert f"tool {function.__name__!r}" in str(caught.value)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidAgent, match="agent 'made' has two tools named 'same'"):
        registered(tools=[tool(name="same")(lambda: None), tool(name="same")(lambda: None)])


def test_a_class_instead_of_an_object_is_refused_with_the_call_to_write() -> None:
    with pytest.raises(InvalidAgent, match=r"pass an object: Own\(\)"):
        AgentRegistry([Own])  # type: ignore[list-item]  # the fault under test
    with pytest.raises(InvalidAgent, match="is no agent"):
        AgentRegistry(["support"])  # type: ignore[list-item]  # the fault under test
    with pytest.raises(InvalidAgent, match="no agents given"):
        AgentRegistry([])


def test_two_agents_of_one_name_are_refused() -> None:
    agent = type("Made", (Agent,), {"name": "made", "model": "demo"})
    with pytest.raises(InvalidAgent, match="two agents are named 'made'"):
        AgentRegistry([agent(), agent()])


def test_an_unknown_agent_is_named_together_with_the_known_ones() -> None:
    agent = type("Made", (Agent,), {"name": "made", "model": "demo"})
    with pytest.raises(UnknownAgent, match=r"'other'.*registered: made"):
        AgentRegistry([agent()]).get("other")


def passing(chunk: Any) -> Any:
    return chunk


async def slow(chunk: Any) -> Any:
    return chunk


@pytest.mark.parametrize(
    ("transforms", "hooks", "said"),
    [
        ({"redact": slow}, [], "transform 'redact' must be a plain function"),
        ({"redact": "text"}, [], "transform 'redact' must be a plain function"),
        ({"redact": passing}, [with_options(transforms={"redact": passing})], "two transforms named 'redact'"),
    ],
)
def test_a_transform_that_cannot_run_is_refused(transforms: Any, hooks: list[Any], said: str) -> None:
    with pytest.raises(InvalidAgent, match=f"agent 'made'.*{said}"):
        registered(hooks, transforms=transforms)


def test_an_agent_has_its_own_transforms_and_those_of_its_hooks() -> None:
    agent = registered([with_options(transforms={"b": passing})], transforms={"a": passing})
    assert list(agent.transforms) == ["a", "b"]
