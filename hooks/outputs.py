"""Structured output: what the final answer of a turn has to look like, and whether it does."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from everturn.checks import said
from everturn.hooks.references import UnresolvedReference, reference_to, resolve
from everturn.turns import JsonDict

MAX_PROBLEMS: Final = 10
_FENCE: Final = "```"


class InvalidOutput(ValueError):
    """An answer does not fit; the message lists what is wrong and is meant for the model."""


class OutputSpec(BaseModel):
    """The form of an output. reference: the pydantic model that it is validated with, None for a plain JSON schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    json_schema: dict[str, Any]
    reference: str | None = None

    def response_format(self) -> JsonDict:
        """The `response_format` of a chat request."""
        return {"type": "json_schema", "json_schema": {"name": self.name, "schema": self.json_schema}}

    def parsed(self, text: str) -> Any:
        """The answer's value as plain JSON. Raises InvalidOutput; UnresolvedReference on a worker without the model."""
        if self.reference is None:
            return _checked_by_schema(_json(text), self.json_schema)
        model = resolve(self.reference)
        if not _is_model(model):
            raise UnresolvedReference(f"{self.reference!r} is no pydantic model on this worker")
        return _checked_by_model(_json(text), model)


def output_spec(given: Any) -> Any:
    """What an author may give for `output`, as a spec: a pydantic model class or a JSON schema.

    Raises UnresolvedReference for a class that other workers could not find, ValueError for a schema that is none.
    """
    if _is_model(given):
        return OutputSpec(
            name=_safe_name(given.__name__),
            json_schema=given.model_json_schema(),
            reference=reference_to(given, "output model"),
        )
    if isinstance(given, dict) and "json_schema" not in given:
        schema = cast(JsonDict, given)
        _check_schema(schema)
        return OutputSpec(name=_safe_name(str(schema.get("title", "output"))), json_schema=schema)
    return cast(Any, given)


def _is_model(given: Any) -> bool:
    return isinstance(given, type) and issubclass(given, BaseModel)


def _safe_name(name: str) -> str:
    """Providers take letters, digits, _ and -, up to 64."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)[:64] or "output"


def _check_schema(schema: JsonDict) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"output is no valid JSON schema: {error.message}") from error


def _json(text: str) -> Any:
    """The JSON value of an answer, with or without a code fence around it."""
    stripped = text.strip()
    if stripped.startswith(_FENCE) and stripped.endswith(_FENCE) and "\n" in stripped:
        stripped = stripped[stripped.index("\n") : -len(_FENCE)]
    try:
        return json.loads(stripped, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidOutput(f"the answer is not JSON: {error}") from error


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _checked_by_schema(value: Any, schema: JsonDict) -> Any:
    from jsonschema import Draft202012Validator
    from referencing import Registry

    try:
        # An empty registry: a schema that refers to an address is not fetched from there.
        validator = Draft202012Validator(schema, registry=Registry())
        found = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
    except Exception as error:  # patterns and references that nobody has tried yet
        raise InvalidOutput(f"the schema cannot be applied: {type(error).__name__}: {said(error)[:200]}") from error
    if found:
        raise InvalidOutput("; ".join(f"{error.json_path}: {error.message[:200]}" for error in found[:MAX_PROBLEMS]))
    return value


def _checked_by_model(value: Any, model: type[BaseModel]) -> Any:
    try:
        return model.model_validate_json(json.dumps(value)).model_dump(mode="json")
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]
        lines = [f"{'.'.join(str(part) for part in p['loc']) or 'the answer'}: {p['msg']}" for p in problems]
        raise InvalidOutput("; ".join(lines)) from error
    except Exception as error:  # validators of the author's may raise anything
        raise InvalidOutput(f"{model.__name__}: {type(error).__name__}: {said(error)[:200]}") from error
