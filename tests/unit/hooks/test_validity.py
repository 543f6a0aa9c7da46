"""Declarations that cannot run are refused by name, and keys in them are not shown."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from everturn import Agent, Ask, BadInput, Hooks, InvalidAgent, Model, TurnConfig, tool
from everturn.hooks.registry import AgentRegistry
from everturn.hooks.session import Session

SECRET = "sk-very-secret-0123456789"
WRONG: dict[str, tuple[Any, ...]] = {
    "system": (5, None, ["a"]),
    "tools": (5, "lookup", None),
    "hooks": (5, "hook", None),
    "transforms": (5, [], "x"),
    "models": (5, "openai/x", [5]),
    "max_steps": (0, -1, 1.5, "10", None, math.nan, 10**6, True),
    "temperature": ("hot", math.nan, math.inf),
    "top_p": ("x", -math.inf),
    "max_output_tokens": (0, "x", 1.5),
    "stop_sequences": ("x", [5]),
    "seed": ("x", 1.5),
    "tool_choice": (5, ["x"]),
    "send_reasoning": ("yes", 1, None),
    "provider_options": (5, "x", []),
    "first_token_timeout": (0, -1, "x", None, math.nan),
    "chat_stream_stall_timeout": (-1, "x", None, math.nan),
    "step_timeout": (0, "x", math.nan),
}
WRONG_MODELS: dict[str, tuple[Any, ...]] = {
    "api_base": (5, b"x"),
    "api_key_env": (5, ["X"]),
    "headers": (5, {"a": 5}, {5: "a"}, {"a b": "c"}, {"": "c"}, {"a": f"{SECRET}\n"}, {"é": SECRET}, {"a": "\ud800"}),
    "fallbacks": (5, "openai/x"),
    "lane": (5, "fast", "\x00"),
}
WRONG_HOOKS: dict[str, tuple[Any, ...]] = {
    "name": (5, b"x"),
    "tools": (5, [5]),
    "timeout": (0, -1, "x", None, math.nan),
    "on_error": (5, "ignore", None),
    "transforms": (5, []),
}


def agent(**attributes: Any) -> Agent:
    given = {"name": "made", "model": "demo", **attributes}
    made: Agent = type("Made", (Agent,), given)()
    return made


def cases(table: dict[str, tuple[Any, ...]]) -> list[tuple[str, Any]]:
    return [(name, value) for name, values in table.items() for value in values]


@pytest.mark.parametrize(("name", "value"), cases(WRONG))
def test_an_attribute_that_cannot_be_used_is_named_with_its_agent(name: str, value: Any) -> None:
    with pytest.raises(InvalidAgent, match=rf"agent 'made'.*{name}"):
        AgentRegistry([agent(**{name: value})])


@pytest.mark.parametrize(("name", "value"), cases(WRONG_MODELS))
def test_a_model_that_cannot_be_asked_is_named_without_its_keys(name: str, value: Any) -> None:
    with pytest.raises(InvalidAgent, match=rf"the model of agent 'made': {name}") as refused:
        AgentRegistry([agent(model=Model("openai/x", **{name: value}))])
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(("name", "value"), cases(WRONG_HOOKS))
def test_a_hook_that_cannot_run_is_named(name: str, value: Any) -> None:
    hook = type("Odd", (Hooks,), {name: value})()
    with pytest.raises(InvalidAgent, match=rf"agent 'made': hook .*{name}"):
        AgentRegistry([agent(hooks=[hook])])


@pytest.mark.parametrize("headers", [{"X-Key": f"{SECRET}\r\n"}, {"X Key": SECRET}, {"X-Key": SECRET + "\x00"}])
def test_the_error_of_a_wrong_header_does_not_show_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as refused:
        TurnConfig(headers=headers)
    assert SECRET not in str(refused.value)
    assert "headers" in str(refused.value)


@pytest.mark.parametrize("seconds", [math.nan, 0, -1, math.inf, "x", None, 1e30, 10**400, b"1"])
def test_a_person_is_not_asked_for_an_impossible_time(seconds: Any) -> None:
    with pytest.raises(BadInput, match=r"Ask\.timeout must be"):
        Ask("?", seconds)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": "x"},
        {"timeout": math.inf},
        {"timeout": None},
        {"retries": "x"},
        {"retries": 1.5},
        {"retries": 10**9},
    ],
)
def test_a_tool_that_cannot_run_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidAgent, match=rf"tool 'note': {next(iter(options))} must be"):

        @tool(**options)
        def note(text: str) -> str:
            return text


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("context", ("", "text")),
        ("context", (5, "text")),
        ("context", ("label", 5)),
        ("context", ("label", "text", "many")),
        ("compact_after", ("many",)),
        ("compact_after", (0,)),
        ("compact_after", (math.nan,)),
        ("on_compaction", (5,)),
        ("truncation", ("x",)),
        ("truncation", (0,)),
        ("truncation", (4, 1.5)),
    ],
)
def test_a_session_refuses_what_it_cannot_use(method: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidAgent):
        getattr(Session(), method)(*arguments)


@pytest.mark.parametrize(
    "options", [{"headroom": "x"}, {"headroom": math.nan}, {"max_retries": -1}, {"max_compactions": 1.5}]
)
def test_a_session_refuses_limits_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidAgent, match=next(iter(options))):
        Session().context_overflow(**options)
