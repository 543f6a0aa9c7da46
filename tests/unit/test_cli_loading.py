"""MODULE[:AGENT] on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.errors import BadInput
from everturn.modules import split_spec
from everturn.worker.cli.loading import load_agents
from everturn.worker.cli.workers import watched_folders

AGENTS = """
from everturn.hooks.agent import Agent
from everturn.worker.sample import Support
from {neighbour} import GREETING

class Alpha(Agent):
    name = "alpha"
    model = "demo"
    system = GREETING

class Beta(Agent):
    name = "beta"
    model = "demo"

class Base(Agent):
    pass

class Needy(Agent):
    name = "needy"
    model = "demo"
    def __init__(self, key):
        self.key = key

needy = Needy("k")
"""


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file with agents, whose names no other test uses."""
    unique = f"m{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{unique}_neighbour.py").write_text('GREETING = "hello"')
    path = tmp_path / f"{unique}.py"
    path.write_text(AGENTS.format(neighbour=f"{unique}_neighbour"))
    before = list(sys.path)
    yield path
    sys.path[:] = before


def test_a_file_gives_all_agents_that_it_defines_and_none_that_it_imports(module: Path) -> None:
    assert sorted(agent.name for agent in load_agents([str(module)])) == ["alpha", "beta", "needy"]


@pytest.mark.parametrize(("wanted", "name"), [("Alpha", "alpha"), ("beta", "beta"), ("needy", "needy")])
def test_an_agent_is_chosen_by_class_by_variable_or_by_its_name(module: Path, wanted: str, name: str) -> None:
    assert [agent.name for agent in load_agents([f"{module}:{wanted}"])] == [name]


def test_the_same_agent_named_twice_is_one(module: Path) -> None:
    assert len(load_agents([f"{module}:Alpha", f"{module}:alpha"])) == 1


def test_a_dotted_module_is_found(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(module.parent)
    assert load_agents([f"{module.stem}:Beta"])[0].name == "beta"
    assert load_agents(["everturn.worker.sample"])[0].name == "support"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("{module}:Gamma", "has no agent 'Gamma' .agents there: Alpha, "),
        ("{folder}/missing.py", "there is no file"),
        ("no_such_module_anywhere", "there is no module 'no_such_module_anywhere'"),
        ("json", "json defines no agent"),
        ("{folder}/broken.py", "cannot be imported: SyntaxError"),
        ("{folder}/failing.py", "cannot be imported: ModuleNotFoundError: No module named 'not_installed'"),
        ("{module}:Needy", "Needy cannot be made without arguments"),
    ],
)
def test_what_cannot_be_loaded_is_one_clear_error(module: Path, spec: str, complaint: str) -> None:
    (module.parent / "broken.py").write_text("def (")
    (module.parent / "failing.py").write_text("import not_installed")
    with pytest.raises(BadInput, match=complaint):
        load_agents([spec.format(module=module, folder=module.parent)])


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("agents.py:Support", ("agents.py", "Support")),
        ("a.b.c", ("a.b.c", None)),
        ("agents.py:", ("agents.py", None)),
        ("C:\\agents\\a.py", ("C:\\agents\\a.py", None)),
        ("C:\\agents\\a.py:Support", ("C:\\agents\\a.py", "Support")),
    ],
)
def test_the_last_colon_parts_module_and_agent(spec: str, parts: tuple[str, str | None]) -> None:
    assert split_spec(spec) == parts


def test_reloading_watches_the_folders_of_the_files_and_the_current_one_for_modules(tmp_path: Path) -> None:
    assert watched_folders([f"{tmp_path}/a.py:A", f"{tmp_path}/b.py"]) == [tmp_path.resolve()]
    assert watched_folders(["some.module"]) == [Path.cwd()]
    with pytest.raises(BadInput, match="there is no folder"):
        watched_folders([f"{tmp_path}/missing/a.py"])
