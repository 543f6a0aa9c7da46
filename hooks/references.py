"""Author's objects by name: what a hook puts into a turn's settings has to be found by whichever worker goes on."""

from __future__ import annotations

import importlib
import sys
from typing import Any


class UnresolvedReference(ValueError):
    """An object cannot be named, or the name leads to no object; the message says what to do."""


def reference_to(thing: Any, what: str) -> str:
    """`module:qualified.name` of an object that a module has at its top level, or in a class there.

    what: how to call it in the message. Raises UnresolvedReference if importing that name would not give `thing`.
    """
    owner = getattr(thing, "function", thing)  # a Tool stands where its function was
    module_name, name = getattr(owner, "__module__", None), getattr(owner, "__qualname__", None)
    module = sys.modules.get(str(module_name))
    if isinstance(name, str) and _at(module, name) is thing:
        return f"{module_name}:{name}"
    for attribute, value in vars(module).items() if module else ():
        if value is thing:
            return f"{module_name}:{attribute}"
    raise UnresolvedReference(
        f"{what} {name or thing!r} cannot be found by name, so another worker could not go on with the turn; "
        "define it at the top level of a module"
    )


def resolve(reference: str) -> Any:
    """The object of a reference; imports its module. Raises UnresolvedReference."""
    module_name, _, name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        raise UnresolvedReference(
            f"{reference!r} cannot be imported on this worker: {error}; deploy its module to every worker"
        ) from error
    found = _at(module, name) if name else None
    if found is None:
        raise UnresolvedReference(
            f"module {module_name!r} has no {name!r} on this worker; deploy the same code to every worker"
        )
    return found


def _at(start: object, path: str) -> Any:
    found: Any = start
    for step in path.split("."):
        found = getattr(found, step, None)
    return found
