"""The names that outlive a process, as the code has them and as docs/protocol.md lists them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from temporalio import activity, workflow

from everturn import Agent, EverturnPlugin, chunks, errors
from everturn.activities.models.failures import FailureKind
from everturn.search_attributes import SEARCH_ATTRIBUTES
from everturn.store.schema import VERSION_TABLE
from everturn.store.tables import METADATA

REPO = Path(__file__).parents[2]
PAGE = REPO / "docs" / "protocol.md"
ROOMS = ("activities", "client", "store", "workflows")
Names = dict[str, set[str]]
"""Section of the page → its names; a name inside of another is written `outer.inner`."""


class Anybody(Agent):
    """An agent, because a worker needs one."""

    name = "anybody"
    model = "demo"


@cache
def of_the_code() -> Names:
    """What a worker registers, the tables define, and the modules write."""
    plugin = EverturnPlugin([Anybody()])
    return {
        "Workflows": set(_workflow_names(plugin)),
        "Activities": {_activity_name(function) for function in _listed(plugin.activities)},
        "Search attributes": set(SEARCH_ATTRIBUTES),
        "Chunk types": {value for name, value in vars(chunks).items() if name.isupper() and isinstance(value, str)},
        "Tables and columns": {
            VERSION_TABLE,
            *METADATA.tables,
            *(f"{table.name}.{column.name}" for table in METADATA.tables.values() for column in table.columns),
        },
        "Error types": set(_error_types()),
    }


def of_the_page() -> Names:
    """The names in the first cells of the page's tables; those in the second cell belong to them."""
    found: Names = {}
    for title, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        names = found.setdefault(title, set())
        for row in re.findall(r"^\| *`([^|`]+)` *\|([^|]*)\|", body, re.MULTILINE):
            names.add(row[0])
            if title in ("Workflows", "Tables and columns"):
                names |= {f"{row[0]}.{inner}" for inner in re.findall(r"`([^`]+)`", row[1])}
    return {title: names for title, names in found.items() if names}


def _workflow_names(plugin: EverturnPlugin) -> Iterator[str]:
    for cls in _listed(plugin.workflows):
        definition = workflow._Definition.must_from_class(cls)
        yield str(definition.name)
        for messages in (definition.signals, definition.updates, definition.queries):
            yield from (f"{definition.name}.{name}" for name in messages)


def _activity_name(function: Any) -> str:
    return str(activity._Definition.must_from_callable(function).name)


def _listed(values: object) -> list[Any]:
    assert isinstance(values, (list, tuple)), values
    return list(values)


def _error_types() -> Iterator[str]:
    """Our exception classes, whose names are error types, and what the modules write as one."""
    yield from (
        name
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, errors.EverturnError) and not name.startswith("_")
    )
    for room in ROOMS:
        for path in sorted((REPO / room).rglob("*.py")):
            if "scripted" not in path.parts and "migrations" not in path.parts:
                yield from written_types(path)


def written_types(path: Path) -> Iterator[str]:
    """The error types that a module writes."""
    module = importlib.import_module("everturn." + ".".join(path.relative_to(REPO).with_suffix("").parts))
    for node in ast.walk(ast.parse(path.read_text())):
        for expression in _type_expressions(node):
            yield from _value(expression, module)


def _type_expressions(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that name an error's type, by the four forms in which the code writes one."""
    if isinstance(node, ast.Tuple) and len(node.elts) == 3 and _is_kind(node.elts[0]):
        yield node.elts[1]  # a row of the table of model failures
    if not isinstance(node, ast.Call):
        return
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    position = {"TurnError": 0, "ModelFailure": 1, "_limit": 2}.get(called)
    if position is not None and len(node.args) > position:
        yield node.args[position]
    if called == "ApplicationError":
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "type")


def _is_kind(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in get_args(FailureKind)


def _value(expression: ast.expr, module: ModuleType) -> Iterator[str]:
    """A literal, or a constant of the module; whatever is handed on was written elsewhere."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield expression.value
    elif isinstance(expression, ast.Name) and expression.id.isupper():
        yield str(getattr(module, expression.id))
    elif isinstance(expression, ast.BoolOp):
        for part in expression.values:
            yield from _value(part, module)
