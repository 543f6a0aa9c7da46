"""`everturn doctor`: what works, what does not, and what to do about it."""

from __future__ import annotations

import platform
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from everturn import errors
from everturn.connection import connect_temporal, place_of
from everturn.errors import BadInput, ServerFailed, StoreUnavailable, TemporalUnavailable
from everturn.hooks.agent import Agent
from everturn.search_attributes import missing_search_attributes
from everturn.settings import DEFAULT_STORE, Settings
from everturn.store.store import Store
from everturn.worker.cli.loading import load_agents
from everturn.worker.cli.model_access import missing_key, missing_model_package, model_name
from everturn.worker.cli.options import Places
from everturn.worker.cli.running import DONE, TURN_FAILED, UNREACHABLE
from everturn.worker.schedule import find_schedule, schedule_id, unpause
from everturn.worker.server_command import find_binary
from everturn.worker.versioning import pollers_of

ROOMS: Final = ("activities", "client", "hooks", "store", "worker", "workflows")
RPC_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: ok, WARN (turns run, something else is missing) or FAIL, and then what to do."""

    state: Literal["ok", "WARN", "FAIL"]
    topic: str
    fact: str
    advice: str = ""
    exit_code: int = DONE


async def examine(agents: Sequence[str], places: Places) -> int:
    """Prints a line for each check. Returns 0, 1 if something is wrong, 3 if a service cannot be reached."""
    worst = DONE
    async for finding in _findings(agents, places.settings()):
        advice = f": {finding.advice}" if finding.advice else ""
        sys.stdout.write(f"{finding.state:<4}  {finding.topic:<17} {finding.fact}{advice}\n")
        sys.stdout.flush()
        worst = max(worst, finding.exit_code)
    return worst


async def _findings(agents: Sequence[str], settings: Settings) -> AsyncGenerator[Finding]:
    yield _versions()
    yield _rooms()
    yield _binary()
    async for finding in _temporal(settings):
        yield finding
    yield await _store(settings)
    for finding in _models(agents):
        yield finding


def _versions() -> Finding:
    names = ("everturn", "temporalio", "litellm", "sqlmodel")
    found = ", ".join(f"{name} {version(name)}" for name in names)
    return Finding("ok", "versions", f"Python {platform.python_version()}, {found}")


def _rooms() -> Finding:
    """A checkout without symbolic links (Windows, some archives) has text files in their place."""
    package = Path(errors.__file__).parent
    broken = [room for room in ROOMS if not (package / room / "__init__.py").is_file()]
    if broken:
        advice = "check out again with symbolic links: see CONTRIBUTING.md"
        return Finding("FAIL", "package", f"{', '.join(broken)} cannot be imported", advice, TURN_FAILED)
    return Finding("ok", "package", str(package))


def _binary() -> Finding:
    try:
        return Finding("ok", "embedded server", find_binary())
    except ServerFailed as error:
        return Finding("WARN", "embedded server", str(error))


async def _temporal(settings: Settings) -> AsyncGenerator[Finding]:
    try:
        client = await connect_temporal(settings)
    except (TemporalUnavailable, BadInput) as error:
        yield Finding("FAIL", "Temporal", str(error), exit_code=error.exit_code)
        return
    place = place_of(client)
    try:
        system = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=RPC_TIMEOUT)
        where = f"{place.target}, namespace {place.namespace}, server {system.server_version}"
        yield Finding("ok", "Temporal", where)
        yield await _attributes(client)
        yield await worker_finding(client, settings.task_queue)
        yield await _schedule(client, settings.task_queue)
    except RPCError as error:
        yield Finding("FAIL", "Temporal", f"{place.target}: {error.message}", "see the server's log", UNREACHABLE)


async def _attributes(client: Client) -> Finding:
    missing = await missing_search_attributes(client)
    if missing:
        return Finding("WARN", "search attributes", f"not registered: {', '.join(missing)}", "run everturn setup")
    return Finding("ok", "search attributes", "all registered")


async def worker_finding(client: Client, task_queue: str) -> Finding:
    """Who runs turns, and whether new turns find one of them. Raises RPCError."""
    pollers = await pollers_of(client, task_queue)
    if not pollers.identities:
        fact, advice = f"none polls task queue {task_queue}", "start one: everturn worker MODULE"
        return Finding("WARN", "workers", fact, advice)
    if wrong := pollers.missing:
        what, advice = wrong
        return Finding("FAIL", "workers", f"{what}: new turns wait", advice, TURN_FAILED)
    builds = f", builds {', '.join(build for _, build in pollers.builds)}" if pollers.builds else ""
    fact = f"{len(pollers.identities)} on task queue {task_queue}: {', '.join(pollers.identities)}{builds}"
    return Finding("ok", "workers", fact)


async def _schedule(client: Client, task_queue: str) -> Finding:
    found = await find_schedule(client, task_queue)
    name = schedule_id(task_queue)
    if found is None:
        return Finding("WARN", "lost turns", f"no schedule {name} looks for them", "run everturn setup")
    if found.schedule.state.paused:
        return Finding("WARN", "lost turns", f"the schedule {name} is paused", f"run {unpause(name)}")
    every = ", ".join(f"{spec.every.total_seconds():g} s" for spec in found.schedule.spec.intervals)
    return Finding("ok", "lost turns", f"looked for every {every} by the schedule {name}")


async def _store(settings: Settings) -> Finding:
    try:
        store = await Store.open(settings.store or DEFAULT_STORE, timeout=settings.connect_timeout)
    except (StoreUnavailable, BadInput) as error:
        return Finding("FAIL", "store", str(error), exit_code=error.exit_code)
    try:
        return Finding("ok", "store", f"{store.url}, tables of revision {await store.revision()}")
    finally:
        await store.close()


def _models(specs: Sequence[str]) -> list[Finding]:
    if not specs:
        advice = "everturn doctor MODULE checks the models of its agents"
        return [Finding("WARN", "models", "not checked", advice)]
    try:
        agents = load_agents(specs)
    except BadInput as error:
        return [Finding("FAIL", "models", str(error), exit_code=error.exit_code)]
    return [_model(agent) for agent in agents]


def _model(agent: Agent) -> Finding:
    fact = f"agent {agent.name}: {model_name(agent)}"
    if package := missing_model_package(agent):
        return Finding("FAIL", "models", f"{fact} needs the package {package}", "run make local-model", TURN_FAILED)
    if variable := missing_key(agent):
        advice = f"set {variable} where the worker runs, or give the model an api_base"
        return Finding("FAIL", "models", f"{fact} has no key", advice, TURN_FAILED)
    return Finding("ok", "models", fact)
