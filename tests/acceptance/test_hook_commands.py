"""everturn hooks: set, show, remove and log, and turns that follow."""

from __future__ import annotations

import getpass
import uuid

import pytest

from everturn.store.store import Store
from tests.services.commands import CommandLine

CLOSED = """\
def before_turn(data, runtime):
    log("asked", runtime["user"]["id"])
    return {"block": True, "reason": "Closed."}
"""


@pytest.fixture
async def line(bare: CommandLine) -> CommandLine:
    """Commands with a store and no Temporal: they need none."""
    url = f"sqlite:///{bare.folder}/everturn.db"
    await (await Store.open(url, create=True)).close()
    (bare.folder / "closed.py").write_text(CLOSED)
    return CommandLine(bare.folder, {"EVERTURN_STORE": url, "EVERTURN_TARGET": "127.0.0.1:1"})


async def test_versions_are_set_shown_listed_and_removed(line: CommandLine) -> None:
    shown = await line.run("hooks", "set", "shop", "closed.py", "--by", "ann")
    assert (shown.code, shown.errors) == (0, "")
    assert "version 1 of shop, set by ann" in shown.output
    again = await line.run("hooks", "set", "shop", "closed.py")
    assert again.output == "version 1 of shop has this text already\n"
    second = await line.run("hooks", "set", "shop", "-", "--json", words="def before_turn(data, runtime): pass\n")
    assert (second.json()["version"], second.json()["author"], second.json()["changed"]) == (2, getpass.getuser(), True)
    assert (await line.run("hooks", "show", "shop", "--version", "1")).output == CLOSED
    assert (await line.run("hooks", "show", "shop", "--json")).json()["version"] == 2
    removed = await line.run("hooks", "remove", "shop", "--by", "bob", "--json")
    assert (removed.json()["version"], removed.json()["removed_by"]) == (2, "bob")
    listed = (await line.run("hooks", "log", "shop", "--json")).json()
    assert [version["version"] for version in listed["versions"]] == [2, 1]
    assert listed["runs"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("set", "shop", "none.py"), 2, "'none.py' cannot be read"),
        (("set", "shop", "broken.py"), 2, "broken.py is no valid Python: line 1"),
        (("set", "", "closed.py"), 2, "the agent's name must have 1 to 200 characters"),
        (("show", "shop"), 1, "agent 'shop' has no active turn code in this store"),
        (("show", "shop", "--version", "7"), 1, "agent 'shop' has no version 7 of turn code"),
        (("remove", "shop"), 1, "agent 'shop' has no active turn code in this store"),
        (("log", "shop"), 1, "agent 'shop' has no active turn code in this store"),
        (("log", "shop", "--store", "sqlite:///none.db"), 3, "does not exist"),
    ],
)
async def test_what_cannot_be_done_is_one_line_and_an_exit_code(
    line: CommandLine, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (line.folder / "broken.py").write_text("def before_turn(:\n")
    shown = await line.run("hooks", *arguments)
    assert (shown.code, shown.output, len(shown.errors.splitlines())) == (code, "", 1)
    assert words in shown.errors


async def test_a_text_without_before_turn_is_stored_with_a_warning(line: CommandLine) -> None:
    (line.folder / "misnamed.py").write_text("def beforeTurn(data, runtime): pass\n")
    shown = await line.run("hooks", "set", "shop", "misnamed.py")
    assert shown.code == 0
    assert "declares no function before_turn(data, runtime); turns will skip it" in shown.errors


async def test_turns_follow_the_stored_code_and_log_shows_their_runs(system: CommandLine) -> None:
    def submit() -> tuple[str, ...]:
        return ("submit", f"thread-{uuid.uuid4().hex[:8]}", "hello", "--agent", "coded", "--user", "u1", "--json")

    before = (await system.run(*submit())).json()
    await system.run("hooks", "set", "coded", "-", "--by", "ann", words=CLOSED)
    blocked = (await system.run(*submit())).json()
    await system.run("hooks", "remove", "coded", "--by", "ann")
    after = (await system.run(*submit())).json()
    assert [turn["status"] for turn in (before, blocked, after)] == ["completed", "blocked", "completed"]
    assert blocked["text"] == "Closed."
    shown = (await system.run("hooks", "log", "coded")).output
    assert f"turn {blocked['request_id']}: ok, version 1" in shown
    assert '[tool:hook:before_turn] info: asked "u1"' in shown
