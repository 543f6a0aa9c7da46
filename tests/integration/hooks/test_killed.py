"""A worker that is killed while a hook runs, at every point: the hook runs again under the same key, and nothing that
was done is done twice. All turns meet the same kill."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn import ChatClient, Store, Turn, TurnResult
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.points import HOOK_POINTS
from tests.integration.turns.lab import eventually
from tests.services.temporal import TemporalService

AGENTS = Path(__file__).with_name("killed_agents.py")
LIMIT = 90.0
CHARGE = "tools calls=1 tool=charge args='{\"amount\": 7}'"
SCRIPTS = {
    "on_chunk": "stall tokens=2 kind=silence times=1 then=ok",
    "on_chat_error": "status code=400",
    "classify_chat_error": "status code=400",
}
"""What the model does in the turn of a point; else it calls a tool and answers."""
WITHIN_THE_STEP = ("on_chunk", "classify_chat_error")
"""Points without an activity of their own: they belong to an attempt, and go with it."""


@dataclass
class Killed:
    """What two kills have left. results and requests (of the model) by point; notes: what the processes wrote."""

    results: dict[str, TurnResult] = field(default_factory=dict[str, TurnResult])
    requests: dict[str, int] = field(default_factory=dict[str, int])
    notes: list[str] = field(default_factory=list[str])
    unlucky: TurnResult | None = None

    def keys(self, point: str) -> list[str]:
        """The idempotency keys of the runs of a point, in order."""
        return [note.partition(" ")[2] for note in self.notes if note.partition(" ")[0] == point]


class House:
    """Starts workers in processes of their own, and leaves none behind."""

    def __init__(self, environment: dict[str, str], folder: Path, stack: AsyncExitStack) -> None:
        self._environment, self._folder, self._stack = environment, folder, stack

    async def start(self, parks: str, agent: str = "") -> asyncio.subprocess.Process:
        """parks: where it stays. agent: the only one that it has."""
        log = (self._folder / f"{parks}.log").open("ab")
        self._stack.callback(log.close)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "everturn.worker", "worker", f"{AGENTS}{agent}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **self._environment, "KILLED_PARKS": parks},
        )
        self._stack.push_async_callback(self.kill, process)
        return process

    async def kill(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await asyncio.wait_for(process.wait(), LIMIT)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def killed(
    temporal: TemporalService, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Killed]:
    folder = tmp_path_factory.mktemp("killed")
    url, notes = f"sqlite:///{folder / 'store.db'}", folder / "notes.txt"
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ScriptedModelServer())
        store = await Store.open(url, create=True)
        stack.push_async_callback(store.close)
        environment = {
            "EVERTURN_TARGET": temporal.address,
            "EVERTURN_NAMESPACE": temporal.namespace,
            "EVERTURN_TASK_QUEUE": folder.name,
            "EVERTURN_STORE": url,
            "KILLED_MODEL_URL": server.base_url,
            "KILLED_NOTES": str(notes),
        }
        house = House(environment, folder, stack)
        chat = await ChatClient.connect(client, task_queue=folder.name, store=store)
        found = Killed()

        async def noted(*wanted: str) -> None:
            """Until each of these has written a note."""

            async def check() -> bool:
                found.notes = notes.read_text().splitlines() if notes.exists() else []
                return {note.partition(" ")[0] for note in found.notes} >= set(wanted)

            await eventually(check, f"notes of {wanted}", LIMIT)

        def asked(turn: Turn) -> int:
            return sum(turn.thread_id in str(request.body) for request in server.requests)

        async def answering(turn: Turn, attempt: int) -> None:
            async def check() -> bool:
                return asked(turn) == attempt

            await eventually(check, f"attempt {attempt} of {turn.request_id}", LIMIT)

        starting, first = await house.start("session", ":configured"), await house.start("hooks")
        turns = {
            point: await chat.submit(f"t-{point}", f"[[{SCRIPTS.get(point, CHARGE)}]] t-{point}", agent=point)
            for point in HOOK_POINTS
        }
        unlucky = await chat.submit("t-unlucky", "[[stall tokens=2]] t-unlucky", agent="unlucky")
        await noted("configure_session", *HOOK_POINTS)
        await answering(unlucky, 1)
        await asyncio.gather(house.kill(starting), house.kill(first))

        second = await house.start("nothing")
        for point, turn in turns.items():
            found.results[point] = await turn.result(LIMIT)
            await over(client, turn)
            found.requests[point] = asked(turn)
        await answering(unlucky, 2)
        await house.kill(second)

        await house.start("nothing", ":unlucky")
        found.unlucky = await unlucky.result(LIMIT)
        await noted("recovery")
        yield found


async def over(client: Client, turn: Turn) -> None:
    """Until the turn's last hook has run, however the turn ended."""
    async with asyncio.timeout(LIMIT):
        await asyncio.gather(client.get_workflow_handle(turn.workflow_id).result(), return_exceptions=True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", [point for point in HOOK_POINTS if point not in WITHIN_THE_STEP])
async def test_a_worker_killed_in_a_hook_costs_no_model_call_and_no_second_effect(killed: Killed, point: str) -> None:
    result = killed.results[point]
    if point == "on_chat_error":
        assert (result.status, result.error and result.error.type, killed.requests[point]) == (
            "error",
            "bad_request",
            1,
        )
    else:
        assert (result.status, result.text, killed.requests[point]) == ("completed", "done: 1 results", 2)
    lost, again, *others = killed.keys(point)
    assert lost == again, "the same run, for whoever keeps account of it"
    assert len({lost, *others}) == 1 + len(others)


@pytest.mark.timeout(300)
async def test_no_tool_ran_twice_although_its_hooks_did(killed: Killed) -> None:
    with_a_tool = [point for point in HOOK_POINTS if point not in SCRIPTS]
    assert killed.notes.count("charge 7") == len(with_a_tool)


@pytest.mark.timeout(300)
async def test_chunks_of_an_attempt_that_died_with_its_worker_are_void_and_the_next_attempt_has_its_own(
    killed: Killed,
) -> None:
    assert (killed.results["on_chunk"].status, killed.results["on_chunk"].text) == ("completed", "ok")
    assert killed.requests["on_chunk"] == 2
    lost, *others = killed.keys("on_chunk")
    assert others
    assert set(others) == {lost.replace(":0:1:", ":0:2:")}


@pytest.mark.timeout(300)
async def test_a_failure_that_nobody_could_classify_is_met_again(killed: Killed) -> None:
    result = killed.results["classify_chat_error"]
    assert (result.status, result.error and result.error.type) == ("error", "bad_request")
    assert killed.requests["classify_chat_error"] == 2
    lost, again = killed.keys("classify_chat_error")
    assert again == lost.replace(":0:1:", ":0:2:")


@pytest.mark.timeout(300)
async def test_a_worker_killed_in_configure_session_never_took_a_turn_and_the_next_one_asks_again(
    killed: Killed,
) -> None:
    assert killed.notes.count("configure_session") == 3, "each process with this agent, once"


@pytest.mark.timeout(300)
async def test_a_step_that_is_given_up_for_its_crashes_fails_in_recovery_and_on_chat_error_hears_of_it_once(
    killed: Killed,
) -> None:
    assert killed.unlucky is not None
    assert (killed.unlucky.status, killed.unlucky.error and killed.unlucky.error.message) == ("error", "Sorry.")
    assert [note for note in killed.notes if note.startswith("recovery")] == ["recovery True lost"]
