"""Structured output: what fits, what does not, and what the model is told."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from everturn import TurnConfig
from everturn.hooks.outputs import InvalidOutput, OutputSpec


class Verdict(BaseModel):
    """A model with a rule that no schema can say."""

    label: str
    score: float
    day: date | None = None

    @field_validator("score")
    @classmethod
    def _share(cls, value: float) -> float:
        if not 0 <= value <= 1:
            raise ValueError("must be between 0 and 1")
        return value


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}},
    "required": ["n"],
    "additionalProperties": False,
}


def spec(given: Any) -> OutputSpec:
    stored = TurnConfig(output=given).as_json()
    found = TurnConfig.model_validate(stored).output_spec
    assert found is not None
    return found


@pytest.mark.parametrize("text", ['{"n": 3}', ' {"n": 3}\n', '```json\n{"n": 3}\n```', '```\n{"n": 3}```'])
def test_an_answer_that_fits_a_schema_is_its_value(text: str) -> None:
    assert spec(SCHEMA).parsed(text) == {"n": 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("three", "the answer is not JSON"),
        ('{"n": NaN}', "NaN is not JSON"),
        ('{"n": 0}', "$.n: 0 is less than the minimum of 1"),
        ("{}", "'n' is a required property"),
        ('{"n": 1, "m": 2}', "Additional properties"),
        ("[1]", "is not of type 'object'"),
        ("[" * 100_000, "the answer is not JSON"),
    ],
)
def test_an_answer_that_does_not_fit_a_schema_is_told_why(text: str, said: str) -> None:
    with pytest.raises(InvalidOutput) as caught:
        spec(SCHEMA).parsed(text)
    assert said in str(caught.value)


def test_a_pydantic_model_is_validated_with_its_own_rules_and_gives_plain_json() -> None:
    found = spec(Verdict)
    assert found.reference == f"{__name__}:Verdict"
    assert found.parsed('{"label": "ok", "score": 1, "day": "2026-01-02"}') == {
        "label": "ok",
        "score": 1.0,
        "day": "2026-01-02",
    }
    with pytest.raises(InvalidOutput, match="score: Value error, must be between 0 and 1"):
        found.parsed('{"label": "ok", "score": 2}')


def test_the_request_names_the_schema_as_providers_take_it() -> None:
    made = spec({**SCHEMA, "title": "My list ä!"}).response_format()
    assert made["type"] == "json_schema"
    assert made["json_schema"]["name"] == "My_list___"
    assert made["json_schema"]["schema"]["required"] == ["n"]


def test_what_is_neither_a_model_nor_a_schema_is_refused_where_it_is_written() -> None:
    class Local(BaseModel):
        x: int

    for wrong, said in (
        (Local, "cannot be found by name"),
        ({"type": "nonsense"}, "no valid JSON schema"),
        ("text", "output"),
        (int, "output"),
    ):
        with pytest.raises(ValidationError, match=said):
            TurnConfig(output=wrong)  # type: ignore[arg-type]  # the fault under test
