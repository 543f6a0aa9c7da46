"""Python modules that people name in a setting or on the command line: by a dotted name, or by their file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from everturn.checks import said, shown
from everturn.errors import BadInput


def split_spec(spec: str) -> tuple[str, str | None]:
    """Module and the name after the colon; the colon of a drive letter (C:/agents.py) is no separator."""
    module, colon, name = spec.rpartition(":")
    if not colon or "/" in name or "\\" in name:
        return spec, None
    return module, name or None


def module_path(spec: str) -> Path | None:
    """The file that a spec names, None if it names a module."""
    module, _ = split_spec(spec)
    return Path(module) if module.endswith(".py") or "/" in module else None


def load_module(name: str) -> ModuleType:
    """The module of a dotted name, which may also lie in the current folder, or of a file's path.

    Its folder joins the places where Python looks for modules. Raises BadInput if it does not exist or fails.
    """
    path = module_path(name)
    try:
        folder = str((path.parent if path else Path()).resolve())
        if folder not in sys.path:
            sys.path.insert(0, folder)  # the module may import its neighbours
        return _load_file(path) if path else importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise BadInput(
                f"there is no module {shown(name)}; give a dotted name, or a path that ends with .py"
            ) from error
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{shown(name)} cannot be imported: {type(error).__name__}: {said(error)[:500]}; --debug shows where"
        ) from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadInput(f"there is no file {str(path)!r}; check the path")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise BadInput(f"{str(path)!r} is no Python module; give a file that ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pydantic look a class's module up by its name
    spec.loader.exec_module(module)
    return module
