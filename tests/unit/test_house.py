"""The house rules that no other tool checks, and a proof that the import rules bite."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
PACKAGE = REPO / "src" / "everturn"
ROOMS = ("activities", "client", "hooks", "store", "testing", "worker", "workflows")
MAX_MODULE_LINES = 400
MAX_TEST_LINES = 500
PLACES = re.compile(r"/(?:home|root|work|Users|opt)/[\w.-]+|[\w.-]+\.internal\b|https?://[\w.:-]*pypi[\w.-]*/simple")
"""Paths of one machine and hosts of package indexes: neither says anything to a reader elsewhere."""


def _tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True, text=True)
    return [REPO / name for name in listed.stdout.split("\0") if name and (REPO / name).is_file()]


def test_every_room_has_its_link_and_every_link_its_room() -> None:
    links = {path.name: path.readlink().as_posix() for path in PACKAGE.iterdir() if path.is_symlink()}
    assert links == {room: f"../../{room}" for room in ROOMS}
    assert all((REPO / room / "__init__.py").is_file() for room in ROOMS)


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    too_long = {
        str(path.relative_to(REPO)): lines
        for path in _tracked_files()
        if path.suffix == ".py"
        and (lines := len(path.read_text().splitlines()))
        > (MAX_TEST_LINES if path.is_relative_to(REPO / "tests") else MAX_MODULE_LINES)
    }
    assert too_long == {}


def test_no_file_names_a_place_of_one_machine() -> None:
    found: list[str] = []
    for path in _tracked_files():
        if path == Path(__file__) or path.is_symlink():
            continue
        text = path.read_text(errors="replace")
        found += [f"{path.relative_to(REPO)}: {match.group()}" for match in PLACES.finditer(text)]
    assert found == []


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's modules as they are now, in a place where faults can be planted."""
    target = tmp_path_factory.mktemp("house")
    shutil.copy(REPO / "pyproject.toml", target)
    shutil.copytree(PACKAGE, target / "src" / "everturn", ignore=shutil.ignore_patterns("__pycache__"))
    return target


def _broken_rules(house: Path) -> set[str]:
    """The import rules that do not hold in `house`, each by the first word of its name."""
    linter = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run(
        [str(linter), "--config", str(house / "pyproject.toml"), "--no-cache"],
        cwd=house / "src",  # the linter looks for the package in the folder where it runs before it looks elsewhere
        capture_output=True,
        text=True,
        timeout=60,
        check=False,  # it fails when a rule is broken
    )
    assert "Contracts: " in run.stdout, run.stdout + run.stderr
    return {line.split()[0] for line in run.stdout.splitlines() if " BROKEN" in line}


@pytest.mark.parametrize(
    ("faulty", "line", "rule"),
    [
        ("hooks", "from everturn.worker import exit", "Imports"),
        ("client", "from everturn.worker import exit", "Imports"),
        ("worker", "from everturn.testing import crash", "Imports"),
        ("errors", "from everturn.store import records", "Imports"),
        ("workflows", "import litellm", "workflows"),
        ("hooks", "import sqlalchemy", "workflows"),
        ("workflows", "from everturn.activities import planted", "workflows"),
        ("worker/exit", "from everturn.worker import server", "No"),
    ],
)
def test_an_import_against_the_rules_is_found(copy: Path, faulty: str, line: str, rule: str) -> None:
    package = copy / "src" / "everturn"
    planted = {
        package / faulty / "fault.py" if (package / faulty).is_dir() else package / f"{faulty}.py": line,
        package / "activities" / "planted.py": "import sqlmodel",
        package / "worker" / "server.py": "from everturn.worker import exit",
    }
    before = {path: path.read_text() if path.exists() else None for path in planted}
    try:
        for path, text in planted.items():
            path.write_text(f"{before[path] or ''}\n{text}\n")
        assert rule in _broken_rules(copy)
    finally:
        for path, text in before.items():
            path.unlink() if text is None else path.write_text(text)


def test_a_module_without_a_place_in_the_layers_is_found(copy: Path) -> None:
    stray = copy / "src" / "everturn" / "helpers.py"
    stray.write_text("")
    try:
        assert "Imports" in _broken_rules(copy)
    finally:
        stray.unlink()


def test_the_copy_without_a_fault_keeps_every_rule(copy: Path) -> None:
    assert _broken_rules(copy) == set()
