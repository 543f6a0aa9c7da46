"""Client tools of a request: what may be asked for, and what their schemas let through."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import BadInput
from everturn.hooks.client_tools import MAX_CLIENT_TOOLS, MAX_CLIENT_TOOLS_BYTES, client_tool_specs, client_tools
from everturn.hooks.tools import ToolInputError

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def spec(**changed: Any) -> dict[str, Any]:
    return {"name": "show_map", "description": "Shows a map.", "schema": SCHEMA, **changed}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("show_map", "must be a list of objects, not str"),
        (spec(), "must be a list of objects, not dict"),
        (["show_map"], r"client_tools\[0\] must be an object"),
        ([spec(name="show map")], "'show map', which cannot be used: 1 to 64 ASCII letters"),
        ([spec(name=7)], "7, which cannot be used"),
        ([spec(), spec()], "two tools named 'show_map'"),
        ([spec(description=None)], "description must be a text"),
        ([spec(schema=None)], "'show_map' needs a JSON schema"),
        ([spec(schema={"type": "text"})], "'show_map' has no valid JSON schema"),
        ([spec(schema={"type": "array"})], '"type": "object", not \'array\''),
        ([spec(schema={})], '"type": "object", not None'),
        ([spec(schema={**SCHEMA, "default": float("nan")})], "the schema of client tool 'show_map' has no JSON form"),
        ([spec(schema={**SCHEMA, "$ref": "https://example.com/a.json"})], "must stay inside"),
        ([spec(parameters={})], "unknown field 'parameters'"),
        ([spec(name=f"t{n}") for n in range(MAX_CLIENT_TOOLS + 1)], "65 tools; a request may bring 64"),
        ([spec(description="x" * MAX_CLIENT_TOOLS_BYTES)], "the limit is 65,536"),
    ],
)
def test_what_cannot_be_offered_to_a_model_is_refused_by_name(given: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        client_tool_specs(given)


def test_a_spec_keeps_its_schema_and_may_leave_the_description_out() -> None:
    assert client_tool_specs([{"name": "show_map", "schema": SCHEMA}]) == [spec(description="")]
    assert client_tool_specs(()) == []


def test_arguments_are_checked_by_the_schema_with_its_own_definitions() -> None:
    schema = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/point"}},
        "$defs": {"point": {"type": "array", "items": {"type": "number"}, "minItems": 2}},
    }
    tool = client_tools(client_tool_specs([spec(schema=schema)]))["show_map"]
    assert tool.validated({"at": [1, 2]}) == {"at": [1, 2]}
    with pytest.raises(ToolInputError, match=r"invalid arguments for show_map: \$\.at"):
        tool.validated({"at": [1]})
