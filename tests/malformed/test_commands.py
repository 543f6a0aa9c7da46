"""Arguments of the command line: one clear line, the right exit code, and no traceback."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.malformed.values import BAD_IDS
from tests.services.commands import clean_environment
from tests.services.temporal import TemporalService

IDS: Final = [
    bad for bad in BAD_IDS if isinstance(bad, str) and len(bad) < 5000 and "\x00" not in bad and bad.strip() != "-"
]
PROGRAM: Final = """
import contextlib, io, json, sys
from everturn.worker.cli.app import run_command_line
from everturn.worker.exit import guarded_exit
found = []
for arguments in json.loads(sys.stdin.read()):
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = run_command_line(arguments)
    found.append([code, output.getvalue(), errors.getvalue()])
print(json.dumps(found))
guarded_exit(0)
"""
"""Many commands in one process: what is tested is what they make of their arguments."""
AGENT: Final = ("--agent", "a")


def bad_usage(folder: Path) -> list[list[str]]:
    """Arguments that no command can use."""
    (folder / "broken.py").write_text("def broken(:\n")
    (folder / "raising.py").write_text("raise ValueError('\\ud800 at import')\n")
    (folder / "empty.py").write_text("")
    (folder / "binary.py").write_bytes(b"\x00\xff\xfe" * 50)
    (folder / "odd.py").write_text("from everturn import Agent\nclass A(Agent):\n    name = 'a'\n    model = 5\n")
    cases: list[list[str]] = [["submit", bad, "hi", *AGENT] for bad in IDS[::2] if not bad.startswith("-")]
    cases += [["submit", "t", "hi", *AGENT, "--request-id", bad] for bad in IDS[::3]]
    cases += [["submit", "t", "hi", "--agent", bad] for bad in IDS[::3]]
    cases += [["submit", "t", "hi", *AGENT, "--user", bad] for bad in IDS[1::3]]
    for command in ("stream", "cancel", "inspect", "messages"):
        cases += [[command, bad] for bad in IDS[::5]]
    bodies = (
        "",
        "{",
        "[]",
        "5",
        '"x"',
        "null ",
        "NaN",
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a":' * 2000,
        '{"a": "\\u0000"}',
    )
    cases += [
        ["submit", "t", "hi", *AGENT, "--body", body]
        for body in (*bodies, '{"a": "\\ud800"}', '{"a": ' + "9" * 5000 + "}")
    ]
    cases += [["submit", "t", words, *AGENT] for words in ("", "  ", "\ud800", "\udcff\udcfe")]
    cases += [
        ["submit", "t", "hi", *AGENT, "--policy", policy] for policy in ("", "later", "QUEUE", "\ud800", "x" * 5000)
    ]
    cases += [["turns", "--status", status] for status in ("", "done", "COMPLETED", "\ud800")]
    cases += [["turns", "--limit", limit] for limit in ("0", "-1", "x", "1.5", "", "9" * 40, "1001")]
    cases += [["turns", "--thread", bad] for bad in IDS[::4]]
    cases += [["stream", "r", "--after", after] for after in ("-1", "x", "", "9" * 40, "1e3", str(2**31))]
    stores = (
        "mysql://x",
        "sqlite://",
        "sqlite:///:memory:",
        "x",
        "://",
        "sqlite://host/x",
        "sqlite:///a?b=c",
    )
    cases += [["turns", "--store", store] for store in stores]
    cases += [[*command, "--store", "sqlite:///nowhere/at/all.db"] for command in (["setup"], ["hooks", "show", "a"])]
    modules = (
        "",
        ":",
        ":x",
        "..",
        ".",
        "no_such_module",
        "no/such/file.py",
        "broken.py",
        "raising.py",
        "empty.py",
        "binary.py",
    )
    cases += [
        ["worker", module] for module in (*modules, "odd.py", "empty.py:Nobody", "a\nb", "\ud800", "x" * 5000, "json")
    ]
    cases += [["hooks", "set", bad, "empty.py"] for bad in IDS[::6]]
    cases += [["hooks", "set", "a", path] for path in ("nowhere.py", "broken.py", "binary.py", ".", "\ud800")]
    cases += [["hooks", "show", "a", "--version", version] for version in ("0", "x", "-1", "9" * 40)]
    cases += [["hooks", "log", "a", "--runs", runs] for runs in ("-1", "x", "1001")]
    cases += [["hooks", "remove", "a", "--by", bad] for bad in IDS[::6]]
    cases += [["server", "--port", port] for port in ("0", "x", "-1", "65536", "9" * 40)]
    cases += [
        ["no-such-command"],
        ["submit"],
        ["submit", "t"],
        ["stream"],
        ["turns", "--no-such-option"],
        ["\ud800"],
        [""],
    ]
    cases += [["turns", "--namespace", bad] for bad in ("no-such-namespace", "\ud800", "a\nb", "x" * 2000)]
    return cases


@pytest.fixture(scope="module")
async def finished(temporal: TemporalService, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[str], Any]]:
    folder = tmp_path_factory.mktemp("commands")
    from everturn import Store

    store = f"sqlite:///{folder}/store.db"
    await (await Store.open(store, create=True)).close()
    cases = bad_usage(folder)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM),
        cwd=folder,
        env=clean_environment({"EVERTURN_TARGET": temporal.address, "EVERTURN_STORE": store}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(json.dumps(cases).encode()), 110)
    assert process.returncode == 0, errors.decode()[-2000:]
    return list(zip(cases, json.loads(output.splitlines()[-1]), strict=True))


async def test_every_wrong_argument_is_one_clear_line_and_exit_code_2(finished: list[tuple[list[str], Any]]) -> None:
    wrong = [
        f"{_short(arguments)}: {code} {errors[:300]!r}"
        for arguments, (code, output, errors) in finished
        if _problem(code, output, errors)
    ]
    assert "\n".join(wrong) == ""


def _problem(code: int, output: str, errors: str) -> bool:
    lines = errors.splitlines()
    clear = len(lines) == 1 and lines[0].startswith("everturn: ") and len(errors) < 1500
    return not (
        clear and code in (1, 2, 3) and output == "" and "unexpected" not in errors and "Traceback" not in errors
    )


def _short(arguments: list[str]) -> str:
    return " ".join(argument if len(argument) < 40 else f"{argument[:20]}…" for argument in map(repr, arguments))
