"""How answers combine, and what they accept."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from everturn import StepConfig, TurnConfig


def test_later_answers_win_field_by_field() -> None:
    merged = TurnConfig(model="a", temperature=0.1).merged(TurnConfig(model="b", seed=7))
    assert merged.as_json() == {"model": "b", "temperature": 0.1, "seed": 7}


def test_active_tools_only_narrow() -> None:
    assert TurnConfig(active_tools=["a", "b"]).merged(TurnConfig(active_tools=["b", "c"])).active_tools == ["b"]
    assert StepConfig(active_tools=[]).merged(StepConfig(active_tools=["b"])).active_tools == []
    assert TurnConfig(active_tools=["a"]).merged(TurnConfig(seed=1)).active_tools == ["a"]


def test_a_field_that_is_none_counts_as_left_out() -> None:
    assert TurnConfig(model="a").merged(TurnConfig(model=None)).model == "a"
    assert TurnConfig(model=None).changed == []


def test_false_and_zero_and_empty_count_as_set() -> None:
    config = TurnConfig(send_reasoning=False, chat_stream_stall_timeout=0, system="", active_tools=[])
    assert config.changed == ["active_tools", "chat_stream_stall_timeout", "send_reasoning", "system"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), "hot"])
def test_temperature_is_a_finite_number(value: object) -> None:
    with pytest.raises(ValidationError):
        TurnConfig.model_validate({"temperature": value})


@pytest.mark.parametrize("value", [-1.5, 0, 2.5, 100])
def test_temperature_may_be_any_finite_number(value: float) -> None:
    assert TurnConfig(temperature=value).temperature == value


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_steps": 0},
        {"max_output_tokens": 0},
        {"timeout": 0},
        {"chat_stream_stall_timeout": -1},
        {"modle": "typo"},
        {"active_tools": "get_weather"},
        {"messages": "hello"},
    ],
)
def test_a_field_that_cannot_be_used_is_refused_where_it_is_written(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TurnConfig.model_validate(wrong)


def test_a_step_cannot_be_given_what_belongs_to_the_turn() -> None:
    for field in ("max_steps", "temperature", "metadata", "timeout", "output", "tools"):
        with pytest.raises(ValidationError):
            StepConfig.model_validate({field: 1})


def test_a_config_survives_its_way_through_the_store() -> None:
    config = TurnConfig(
        model="m", messages=[{"role": "user", "content": "x"}], headers={"a": "b"}, tool_choice={"type": "function"}
    )
    assert TurnConfig.model_validate(config.as_json()).as_json() == config.as_json()
