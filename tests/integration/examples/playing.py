"""Runs the agent of an example against a script, and a check of what it promises."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType

from temporalio.client import Client

from everturn import Agent
from everturn.testing import System, running
from everturn.testing.model import Answer

ROOT = Path(__file__).parents[3]
Check = Callable[[System, ModuleType], Awaitable[None]]
"""Has the name of its example's module."""


def examples_in(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")}


def unmentioned(folder: Path, page: Path) -> list[str]:
    """The folder's examples that the page does not point to."""
    text = page.read_text()
    places = [path.relative_to(ROOT).as_posix() for path in sorted(folder.glob("*.py"))]
    return [place for place in places if place not in text]


async def play(client: Client, folder: Path, check: Check, script: list[Answer]) -> None:
    """Runs the one agent of the example."""
    example = _loaded(folder / f"{check.__name__}.py")
    (agent,) = [
        value
        for value in vars(example).values()
        if isinstance(value, type) and issubclass(value, Agent) and value is not Agent
    ]
    async with running(agent(), model=script, client=client) as system:
        await check(system, example)


def _loaded(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{file.parent.name}_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
