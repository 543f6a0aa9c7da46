"""Tools that a request brings along: the caller's front end runs them, the model is offered them in that turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, cast

from pydantic import BaseModel

from everturn.checks import said, shown
from everturn.errors import BadInput
from everturn.hooks.tools import DEFAULT_TOOL_TIMEOUT, NAME_RULE, Tool, ToolInputError, usable_name
from everturn.messages import dump_json
from everturn.turns import JsonDict

MAX_CLIENT_TOOLS: Final = 64
MAX_CLIENT_TOOLS_BYTES: Final = 64 * 1024
"""They travel through Temporal's history with the turn, and are part of each of its prompts."""
_MAX_PROBLEMS: Final = 10
_FIELDS: Final = frozenset({"name", "description", "schema"})
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})


@dataclass(frozen=True, slots=True)
class ClientTool(Tool):
    """A tool that is known by its JSON schema alone."""

    def validated(self, given: JsonDict) -> dict[str, Any]:
        """See base class."""
        from jsonschema import Draft202012Validator

        try:
            found = sorted(Draft202012Validator(self.schema).iter_errors(given), key=lambda error: error.json_path)
        except Exception as error:  # patterns and references that nobody has tried yet
            message = f"the arguments of {self.name} cannot be checked: {type(error).__name__}: {said(error)[:200]}"
            raise ToolInputError(message) from error
        if found:
            lines = [f"{error.json_path}: {error.message[:200]}" for error in found[:_MAX_PROBLEMS]]
            raise ToolInputError(f"invalid arguments for {self.name}: " + "; ".join(lines))
        return given


def client_tool_specs(given: object) -> list[JsonDict]:
    """What a caller gives as `client_tools`, checked: a list of {"name", "description", "schema"}.

    Raises BadInput that names the tool and what is wrong with it.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise BadInput(f"client_tools must be a list of objects, not {type(given).__name__}")
    items = cast(Sequence[object], given)
    if len(items) > MAX_CLIENT_TOOLS:
        raise BadInput(f"client_tools has {len(items)} tools; a request may bring {MAX_CLIENT_TOOLS}")
    specs = [_spec(item, index) for index, item in enumerate(items)]
    names = [spec["name"] for spec in specs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"client_tools has two tools named {twice!r}; rename one")
    size = len(dump_json(specs, "client_tools").encode())
    if size > MAX_CLIENT_TOOLS_BYTES:
        raise BadInput(f"client_tools has {size:,} bytes as JSON; the limit is {MAX_CLIENT_TOOLS_BYTES:,}")
    return specs


def client_tools(specs: Sequence[JsonDict]) -> dict[str, Tool]:
    """The tools of checked specs, by name."""
    return {spec["name"]: _tool(spec) for spec in specs}


def _tool(spec: JsonDict) -> Tool:
    return ClientTool(
        function=_runs_elsewhere,
        name=spec["name"],
        description=spec["description"],
        arguments=BaseModel,
        schema=spec["schema"],
        context_parameter=None,
        timeout=DEFAULT_TOOL_TIMEOUT,
        retries=0,
        idempotent=False,
        client=True,
    )


def _runs_elsewhere(**arguments: object) -> NoReturn:
    raise RuntimeError(f"a client tool is run by the caller's front end, not here (arguments: {sorted(arguments)})")


def _spec(item: object, index: int) -> JsonDict:
    if not isinstance(item, Mapping):
        raise BadInput(f"client_tools[{index}] must be an object, not {type(item).__name__}")
    fields = cast(Mapping[object, object], item)
    name, description, schema = fields.get("name"), fields.get("description", ""), fields.get("schema")
    if not isinstance(name, str) or not usable_name(name):
        raise BadInput(f"client_tools[{index}] has the name {shown(name)}, which cannot be used: {NAME_RULE}")
    where = f"client tool {name!r}"
    unknown = sorted(str(field) for field in fields if field not in _FIELDS)
    if unknown:
        raise BadInput(f"{where} has the unknown field {shown(unknown[0])}; it takes {', '.join(sorted(_FIELDS))}")
    if not isinstance(description, str):
        raise BadInput(f"{where}: description must be a text, not {type(description).__name__}")
    if not isinstance(schema, Mapping):
        raise BadInput(f"{where} needs a JSON schema of its arguments in `schema`, not {type(schema).__name__}")
    plain: JsonDict = json.loads(dump_json(dict(cast(Mapping[str, Any], schema)), f"the schema of {where}"))
    _check_schema(plain, where)
    return {"name": name, "description": description, "schema": plain}


def _check_schema(schema: JsonDict, where: str) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadInput(f"{where} has no valid JSON schema: {error.json_path}: {error.message[:200]}") from error
    if schema.get("type") != "object":
        raise BadInput(
            f'{where}: the schema of a tool\'s arguments has "type": "object", not {shown(schema.get("type"))}'
        )
    outside = next((reference for reference in _references(schema) if not reference.startswith("#")), None)
    if outside is not None:
        raise BadInput(f"{where}: its schema refers to {shown(outside)}; references must stay inside of it (#/$defs/…)")


def _references(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for item in cast(list[object], node):
            yield from _references(item)
    elif isinstance(node, dict):
        for key, value in cast(JsonDict, node).items():
            if key in _REFERENCES and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
