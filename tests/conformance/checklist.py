"""The names of the specification and the tests that each of them rests on, from checklist.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

CHECKLIST = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class Entry:
    """One name. tests: pytest's names of tests; the part in brackets may have `*`."""

    section: str
    name: str
    tests: tuple[str, ...]


def entries() -> Iterator[Entry]:
    """In the order of the specification."""
    content = tomllib.loads(CHECKLIST.read_text())
    files: dict[str, str] = content.pop("files")
    for section, names in content.items():
        for name, tests in names.items():
            yield Entry(section, name, tuple(_full(test, files) for test in tests))


def fits(node: str, wanted: str) -> bool:
    """Whether a test that pytest found is the wanted one, or one of its cases."""
    function, _, case = node.partition("[")
    wanted_function, _, wanted_case = wanted.partition("[")
    return function == wanted_function and (not wanted_case or fnmatchcase(case, wanted_case))


def _full(test: str, files: dict[str, str]) -> str:
    file, _, name = test.partition("::")
    return f"{files[file]}::{name}"
