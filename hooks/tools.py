"""Tools: Python functions that the model may call."""

from __future__ import annotations

import fnmatch
import inspect
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, cast, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation

from everturn.checks import check_count, check_seconds, said, shown
from everturn.errors import BadInput, InvalidAgent
from everturn.hooks.contexts import ToolContext, ToolInfo
from everturn.turns import JsonDict

logger = logging.getLogger("everturn.hooks")

DEFAULT_TOOL_TIMEOUT = 120.0
"""Seconds; a tool without a limit could hold its turn for ever."""
MAX_TOOL_TIMEOUT = 7 * 86400.0
MAX_RETRIES = 100
_FIELD = "argument_"
"""Parameters may have names that a pydantic model uses itself (schema, copy, _x), so its fields have others."""
MAX_NAME_LENGTH = 64  # the providers' limit for function names
NAME_RULE = f"1 to {MAX_NAME_LENGTH} ASCII letters, digits, _ and -"


class ToolInputError(ValueError):
    """The arguments do not fit the tool's schema; the message lists the fields and is meant for the model."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with its name, description and schema. Calling it calls the function.

    needs_approval: a person has to approve each call, or those whose arguments the function says yes to. client: the
    caller's front end runs it and sends the result; the function has no body and is never called.

    timeout: seconds. retries: how often a failing run is repeated. idempotent: a run that a crash cut short may be
    repeated with the same `ctx.idempotency_key`; otherwise its outcome is reported as unknown.
    """

    function: Callable[..., Any]
    name: str
    description: str
    arguments: type[BaseModel]
    schema: JsonDict
    context_parameter: str | None
    timeout: float
    retries: int
    idempotent: bool
    needs_approval: bool | Callable[[JsonDict], bool] = False
    client: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def asks(self, given: JsonDict) -> bool:
        """Whether a person has to approve a call with these arguments. A rule that raises asks, to be safe."""
        if not callable(self.needs_approval):
            return self.needs_approval
        try:
            return bool(self.needs_approval(given))
        except Exception:
            logger.exception("needs_approval of tool %r raised; the call needs approval", self.name)
            return True

    @property
    def info(self) -> ToolInfo:
        return ToolInfo(self.description, self.schema)

    def validated(self, given: JsonDict) -> dict[str, Any]:
        """Keyword arguments for the function; raises ToolInputError naming each wrong field."""
        try:
            model = self.arguments.model_validate(given)
        except ValidationError as error:
            raise ToolInputError(_field_errors(self, error)) from error
        except Exception as error:  # the types may check in code of the author's
            message = f"invalid arguments for {self.name}: {type(error).__name__}: {said(error)}"
            raise ToolInputError(message) from error
        return {name.removeprefix(_FIELD): getattr(model, name) for name in self.arguments.model_fields}

    def as_openai(self) -> JsonDict:
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": function}


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = DEFAULT_TOOL_TIMEOUT,
    retries: int = 0,
    idempotent: bool = False,
    needs_approval: bool | Callable[[JsonDict], bool] = False,
    client: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = DEFAULT_TOOL_TIMEOUT,
    retries: int = 0,
    idempotent: bool = False,
    needs_approval: bool | Callable[[JsonDict], bool] = False,
    client: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function (`def` or `async def`; a plain `def` runs in a thread).

    The name is the function's, the description its docstring, the JSON schema comes from its type hints. A parameter
    annotated `ToolContext` is filled in by Everturn and hidden from the schema. Raises InvalidAgent if the function
    cannot be described.
    """

    def make(target: Callable[..., Any]) -> Tool:
        made = _make_tool(target, name, description, timeout, retries, idempotent)
        return replace(made, needs_approval=needs_approval, client=client)

    return make if function is None else make(function)


def usable_name(name: str) -> bool:
    """Whether providers take this as the name of a tool."""
    return 0 < len(name) <= MAX_NAME_LENGTH and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)


def matches(patterns: Collection[str] | None, tool_name: str) -> bool:
    """True if the name fits one of the shell-style patterns; None fits all."""
    return patterns is None or any(fnmatch.fnmatchcase(tool_name, pattern) for pattern in patterns)


def _make_tool(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    timeout: float,
    retries: int,
    idempotent: bool,
) -> Tool:
    tool_name: str = name or str(getattr(function, "__name__", ""))
    _check_options(tool_name, timeout, retries)
    arguments, context_parameter = _arguments_model(function, tool_name)
    return Tool(
        function=function,
        name=tool_name,
        description=inspect.cleandoc(description or inspect.getdoc(function) or "").strip(),
        arguments=arguments,
        schema=_plain_schema(arguments.model_json_schema()),
        context_parameter=context_parameter,
        timeout=timeout,
        retries=retries,
        idempotent=idempotent,
    )


def _check_options(name: object, timeout: object, retries: object) -> None:
    if not isinstance(name, str) or not usable_name(name):
        raise InvalidAgent(f"tool name {shown(name)} cannot be used: {NAME_RULE}; pass name=…")
    try:
        usable = 0 < check_seconds(timeout, "timeout") <= MAX_TOOL_TIMEOUT
        check_count(retries, "retries", most=MAX_RETRIES)
    except BadInput as error:
        raise InvalidAgent(f"tool {name!r}: {error}") from error
    if not usable:
        raise InvalidAgent(f"tool {name!r}: timeout must be more than 0 seconds and at most 7 days, not {timeout!r}")


def _arguments_model(function: Callable[..., Any], name: str) -> tuple[type[BaseModel], str | None]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidAgent(
            f"tool {name!r}: a type hint cannot be resolved: {error}; import it in the tool's module"
        ) from error
    fields: dict[str, Any] = {}
    context_parameter: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidAgent(
                f"tool {name!r}: parameter {parameter} cannot be filled by a model; use named parameters"
            )
        hint = hints.get(parameter.name)
        if hint is ToolContext:
            context_parameter = parameter.name
        elif hint is None:
            raise InvalidAgent(f"tool {name!r}: parameter {parameter.name!r} has no type hint; the schema needs one")
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[_FIELD + parameter.name] = (hint, Field(default, alias=parameter.name))
    try:
        return create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields), context_parameter
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, NameError) as error:
        raise InvalidAgent(f"tool {name!r}: its parameters have no JSON schema: {error}") from error


def _plain_schema(schema: JsonDict) -> JsonDict:
    """Without the generated titles, which cost tokens and say nothing."""
    plain = cast(JsonDict, _untitled(schema))
    plain.setdefault("properties", {})
    return plain


_NAMED_SCHEMAS = frozenset({"properties", "$defs"})
_LITERALS = frozenset({"default", "const", "enum", "examples"})


def _untitled(node: object) -> object:
    if isinstance(node, list):
        return [_untitled(item) for item in cast(list[object], node)]
    if not isinstance(node, dict):
        return node
    result: JsonDict = {}
    for key, value in cast(JsonDict, node).items():
        if key in _NAMED_SCHEMAS:
            result[key] = {name: _untitled(schema) for name, schema in cast(JsonDict, value).items()}
        elif key != "title":
            result[key] = value if key in _LITERALS else _untitled(value)
    return result


def _field_errors(tool: Tool, error: ValidationError) -> str:
    lines = [
        f"{'.'.join(str(p) for p in e['loc']) or 'input'}: {e['msg']}" for e in error.errors(include_url=False)[:10]
    ]
    return f"invalid arguments for {tool.name}: " + "; ".join(lines)
