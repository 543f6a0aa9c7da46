"""What the commands of `everturn hooks` do; they need the store alone."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict

from everturn.errors import BadInput, CodeNotFound
from everturn.hooks.code.child import FUNCTION
from everturn.hooks.code.turn_code import check_source, read_source
from everturn.ids import check_id
from everturn.settings import DEFAULT_STORE
from everturn.store.records import CodeRun, HookCode
from everturn.store.store import Store
from everturn.turns import JsonDict
from everturn.worker.cli.options import Places
from everturn.worker.cli.running import DONE
from everturn.worker.cli.viewers import harmless, short

STANDARD_INPUT = "-"


async def set_code(places: Places, agent: str, file: str, by: str | None, as_json: bool) -> int:
    check_id(agent, "the agent's name")
    what = "standard input" if file == STANDARD_INPUT else file
    source = sys.stdin.read() if file == STANDARD_INPUT else read_source(file)
    if FUNCTION not in check_source(source, what):
        sys.stderr.write(f"everturn: {what} declares no function {FUNCTION}(data, runtime); turns will skip it\n")
    author = _who(by)
    async with _opened(places) as store:
        before = await store.code_versions(agent)
        stored = await store.set_code(agent, source, author)
    known = any(code.version == stored.version for code in before)
    said = f"version {stored.version} of {agent} has this text already" if known else _line(stored)
    _print(json.dumps(asdict(stored) | {"changed": not known}) if as_json else said)
    return DONE


async def show(places: Places, agent: str, version: int | None, as_json: bool) -> int:
    async with _opened(places) as store:
        stored = await store.code(agent, version)
    _print(json.dumps(asdict(stored), ensure_ascii=False) if as_json else stored.source.rstrip("\n"))
    return DONE


async def remove(places: Places, agent: str, by: str | None, as_json: bool) -> int:
    async with _opened(places) as store:
        removed = await store.remove_code(agent, _who(by))
    _print(json.dumps(asdict(removed), ensure_ascii=False) if as_json else _line(removed))
    return DONE


async def log(places: Places, agent: str, runs: int, as_json: bool) -> int:
    async with _opened(places) as store:
        versions = await store.code_versions(agent)
        newest = await store.code_runs(agent, runs) if runs else []
    if not versions:
        raise CodeNotFound(agent)
    if as_json:
        found: JsonDict = {"versions": [_facts(code) for code in versions], "runs": [asdict(run) for run in newest]}
        _print(json.dumps(found, ensure_ascii=False))
    else:
        _print(log_text(versions, newest))
    return DONE


def log_text(versions: Sequence[HookCode], runs: Sequence[CodeRun]) -> str:
    """A line for each version, then each run with its log lines below it."""
    lines = [_line(code) for code in versions]
    for run in runs:
        said = f": {run.message}" if run.message else ""
        changed = f", changed {', '.join(run.changed)}" if run.changed else ""
        took = f"version {run.version}, {run.duration_ms} ms"
        lines.append(f"{run.created_at}  turn {run.request_id}: {run.outcome}, {took}{changed}{said}")
        for line in run.logs:
            data = f" {short(line['data'])}" if "data" in line else ""
            dropped = f" (and {line['dropped']} more)" if "dropped" in line else ""
            lines.append(f"    {line['tag']} {line['level']}: {line['message']}{data}{dropped}")
    return "\n".join(lines)


def _line(code: HookCode) -> str:
    line = f"{code.created_at}  version {code.version} of {code.agent}, set by {code.author}"
    return line if code.removed_at is None else f"{line}; removed {code.removed_at} by {code.removed_by}"


def _facts(code: HookCode) -> JsonDict:
    """A version without its text."""
    return {name: value for name, value in asdict(code).items() if name != "source"}


def _who(by: str | None) -> str:
    """The name that is stored with a change. Raises BadInput where nobody can be named."""
    if by is not None:
        return check_id(by, "--by")
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise BadInput("this system knows no user name; say who you are with --by NAME") from error


@asynccontextmanager
async def _opened(places: Places) -> AsyncGenerator[Store]:
    settings = places.settings()
    store = await Store.open(settings.store or DEFAULT_STORE, timeout=settings.connect_timeout)
    try:
        yield store
    finally:
        await store.close()


def _print(text: str) -> None:
    sys.stdout.write((harmless(text) if sys.stdout.isatty() else text) + "\n")
