"""`everturn worker --processes 2` on a real Temporal server and both kinds of store."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client

from everturn import ChatClient, Store
from everturn.activities.scripted import ScriptedModelServer
from tests.services.commands import CommandLine, Running
from tests.services.postgres import PostgresService, postgres  # noqa: F401 - a fixture
from tests.services.temporal import TemporalService

AGENTS = Path(__file__).with_name("agents.py")
LIMIT = 60.0
pytestmark = pytest.mark.timeout(180)


@dataclass
class Crowd:
    """Two worker processes, and a client. command: their parent."""

    command: Running
    chat: ChatClient
    notes: Path

    @property
    def children(self) -> set[int]:
        pid = self.command.process.pid
        return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}

    async def who_ran(self, thread: str) -> int:
        """Runs a turn with one tool call; the process that ran the tool."""
        turn = await self.chat.submit(thread, "[[tools calls=1 tool=whoami]]", agent="crowd")
        assert (await turn.result(LIMIT)).status == "completed"
        return int(str((await turn.info()).tool_calls[0].output))


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    service: PostgresService = request.getfixturevalue("postgres")
    with service.database() as url:
        yield url


@asynccontextmanager
async def crowd(
    url: str, folder: Path, temporal: TemporalService, client: Client, task_queue: str, model: ScriptedModelServer
) -> AsyncIterator[Crowd]:
    store = await Store.open(url, create=True)
    notes = folder / "notes"
    environment = {
        "EVERTURN_TARGET": temporal.address,
        "EVERTURN_NAMESPACE": temporal.namespace,
        "EVERTURN_TASK_QUEUE": task_queue,
        "EVERTURN_STORE": url,
        "TEST_MODEL_SERVER": model.base_url,
        "TEST_NOTES": str(notes),
    }
    line = CommandLine(folder, environment)
    async with await line.start("worker", str(AGENTS), "--processes", "2") as command:
        for number in (1, 2):
            await command.says(rf"\[worker {number}\].*polls task queue")
        yield Crowd(command, await ChatClient.connect(client, task_queue=task_queue, store=store), notes)
    await store.close()


async def test_two_processes_share_the_turns_and_drain_together(
    store_url: str,
    tmp_path: Path,
    temporal: TemporalService,
    client: Client,
    task_queue: str,
    model_server: ScriptedModelServer,
) -> None:
    async with crowd(store_url, tmp_path, temporal, client, task_queue, model_server) as two:
        processes = two.children
        assert len(processes) == 2
        ran: set[int] = set()
        async with asyncio.timeout(LIMIT):
            while len(ran) < 2:
                ran |= set(await asyncio.gather(*(two.who_ran(f"{task_queue}-{len(ran)}-{n}") for n in range(8))))
        assert ran == processes
        assert await two.command.stop() == 0
        for number in (1, 2):
            assert f"[worker {number}] everturn.worker: worker drains" in two.command.output
        assert not any(Path(f"/proc/{pid}").exists() for pid in processes)


async def test_a_killed_process_is_replaced_and_its_turn_goes_on(
    tmp_path: Path, temporal: TemporalService, client: Client, task_queue: str, model_server: ScriptedModelServer
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with crowd(url, tmp_path, temporal, client, task_queue, model_server) as two:
        before = two.children
        turn = await two.chat.submit(task_queue, "[[tools calls=1 tool=hang_once]]", agent="crowd")
        async with asyncio.timeout(LIMIT):
            while not two.notes.exists() or not two.notes.read_text().strip():
                await asyncio.sleep(0.05)
        victim = int(two.notes.read_text())
        os.kill(victim, signal.SIGKILL)
        assert (await turn.result(LIMIT)).status == "completed"
        await two.command.says(r"worker process \d \(pid \d+\) ended with -9")
        async with asyncio.timeout(LIMIT):
            while two.command.output.count("polls task queue") < 3:
                await asyncio.sleep(0.05)
        assert len(two.children) == 2
        assert victim not in two.children
        assert before - {victim} < two.children
        assert await two.command.stop() == 0


async def test_workers_that_cannot_begin_end_the_command_with_their_exit_code(
    tmp_path: Path, temporal: TemporalService, model_server: ScriptedModelServer
) -> None:
    environment = {
        "EVERTURN_TARGET": temporal.address,
        "EVERTURN_STORE": f"sqlite:///{tmp_path}/missing.db",
        "TEST_MODEL_SERVER": model_server.base_url,
        "TEST_NOTES": str(tmp_path / "notes"),
    }
    done = await CommandLine(tmp_path, environment).run("worker", str(AGENTS), "--processes", "2")
    assert done.code == 3
    assert "the file does not exist" in done.errors
    assert "starts in" not in done.errors
