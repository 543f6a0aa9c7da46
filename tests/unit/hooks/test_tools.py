"""From a function to a tool: its schema, its description, and what it says to a wrong call."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from everturn import InvalidAgent, ToolContext, tool
from everturn.hooks.tools import ToolInputError


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    """Where."""

    title: str
    country: str | None = None


@tool
async def forecast(
    ctx: ToolContext,
    place: Place,
    days: Annotated[int, Field(ge=1, le=7, description="how many days")],
    unit: Unit = Unit.CELSIUS,
    since: date | None = None,
    mode: Literal["short", "long"] = "short",
) -> str:
    """Weather of the coming days.

    Slow for more than five days.
    """
    return "sunny"


def test_the_schema_comes_from_the_type_hints_without_generated_titles() -> None:
    properties = forecast.schema["properties"]
    assert sorted(properties) == ["days", "mode", "place", "since", "unit"]
    assert properties["days"] == {"type": "integer", "minimum": 1, "maximum": 7, "description": "how many days"}
    assert properties["mode"] == {"enum": ["short", "long"], "type": "string", "default": "short"}
    assert forecast.schema["required"] == ["place", "days"]
    assert forecast.schema["additionalProperties"] is False
    assert forecast.schema["$defs"]["Place"]["properties"]["title"] == {"type": "string"}
    assert "title" not in forecast.schema


def test_the_context_parameter_is_hidden_from_the_schema_whatever_its_name() -> None:
    @tool
    def act(city: str, run: ToolContext) -> str:
        """Acts."""
        return city

    assert act.context_parameter == "run"
    assert list(act.schema["properties"]) == ["city"]


def test_the_description_is_the_docstring_without_its_indentation() -> None:
    assert forecast.description == "Weather of the coming days.\n\nSlow for more than five days."
    assert tool(name="x", description="  Given.  ")(lambda: None).description == "Given."


def test_a_tool_without_parameters_has_an_empty_object_as_schema() -> None:
    @tool
    def now() -> str:
        """The time."""
        return "noon"

    assert now.schema == {"additionalProperties": False, "properties": {}, "type": "object"}
    assert now.validated({}) == {}


def test_arguments_are_converted_to_what_the_function_expects() -> None:
    arguments = forecast.validated({"place": {"title": "Paris"}, "days": "3", "unit": "f", "since": "2026-01-02"})
    assert arguments == {
        "place": Place(title="Paris"),
        "days": 3,
        "unit": Unit.FAHRENHEIT,
        "since": date(2026, 1, 2),
        "mode": "short",
    }


def test_parameters_may_have_any_name_of_a_python_parameter() -> None:
    @tool
    def act(schema: str, copy: int, model_config: str = "m", _hidden: bool = False, self: int = 1) -> None:
        """Acts."""

    assert list(act.schema["properties"]) == ["schema", "copy", "model_config", "_hidden", "self"]
    expected = {"schema": "s", "copy": 1, "model_config": "m", "_hidden": True, "self": 1}
    assert act.validated({"schema": "s", "copy": 1, "_hidden": True}) == expected
    with pytest.raises(ToolInputError, match="copy: Field required"):
        act.validated({"schema": "s"})


def test_a_wrong_call_is_answered_with_each_wrong_field() -> None:
    with pytest.raises(ToolInputError) as caught:
        forecast.validated({"place": {"country": "FR"}, "days": 9, "town": "Paris"})
    said = str(caught.value)
    assert said.startswith("invalid arguments for forecast: ")
    for field in ("place.title: Field required", "days: Input should be less than or equal to 7", "town: Extra inputs"):
        assert field in said
    assert "https://" not in said


def test_the_list_of_wrong_fields_is_bounded() -> None:
    with pytest.raises(ToolInputError) as caught:
        forecast.validated({f"field{number}": 1 for number in range(1000)})
    assert len(str(caught.value)) < 2000


def test_a_tool_can_still_be_called_as_a_function() -> None:
    @tool
    def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    assert double(4) == 8
    assert double.as_openai()["function"]["name"] == "double"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "get weather"}, "tool name 'get weather'"),
        ({"name": "ä"}, "tool name 'ä'"),
        ({"name": "x" * 65}, "1 to 64"),
        ({"name": "x", "timeout": 0}, "timeout must be"),
        ({"name": "x", "timeout": float("nan")}, "timeout must be"),
        ({"name": "x", "retries": -1}, "retries must be"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidAgent, match=said):
        tool(**options)(lambda: None)  # type: ignore[call-overload]  # the fault under test


def test_a_parameter_without_a_json_schema_is_refused() -> None:
    class Opaque: ...

    def act(thing: Opaque) -> None:
        """Acts."""

    act.__annotations__["thing"] = Opaque
    with pytest.raises(InvalidAgent, match="tool 'act'"):
        tool(act)
