"""What may stand in a turn's telemetry."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from everturn import Telemetry, TurnConfig


def test_a_plain_object_is_a_telemetry_and_outlives_its_way_through_the_turns_settings() -> None:
    config = TurnConfig.model_validate({"telemetry": {"function_id": "support", "attributes": {"plan": "pro", "n": 1}}})
    assert config.telemetry == Telemetry(function_id="support", attributes={"plan": "pro", "n": 1})
    assert TurnConfig.model_validate(config.as_json()) == config
    assert config.changed == ["telemetry"]


def test_a_later_hook_may_take_back_what_an_earlier_one_asked_for() -> None:
    on = TurnConfig(telemetry=Telemetry())
    assert on.active_telemetry == Telemetry()
    assert on.merged(TurnConfig(telemetry=Telemetry(enabled=False))).active_telemetry is None
    assert TurnConfig().active_telemetry is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"attributes": {"user": {"id": 1}}},
        {"attributes": {"rate": float("nan")}},
        {"attributes": {f"a{n}": n for n in range(33)}},
        {"function_id": "x" * 257},
        {"sample": 0.1},
    ],
)
def test_what_is_no_attribute_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Telemetry.model_validate(wrong)
