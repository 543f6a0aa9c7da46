"""One small system under a fault: a store, a worker that will be struck and one that comes after it, and a client."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus

from everturn import ChatClient, Chunk, Store, Turn
from everturn.activities.scripted.server import ScriptedModelServer
from tests.chaos.nursery import Nursery, WorkerProcess

WAIT = 90.0
"""Seconds for anything that must happen; a recovery takes about seven on a quiet machine, many times that on a busy
one."""
LOOK = 0.05


@dataclass(frozen=True, slots=True)
class Services:
    """What all systems of a run share."""

    temporal: str
    client: Client
    model: ScriptedModelServer
    nursery: Nursery


@dataclass(frozen=True, slots=True)
class Planned:
    """A turn, and what must come of it whatever happens.

    answer: the assistant's words. begins: only how they begin, and a crash may cost all of them. requests: model calls
    without a fault. calls: tool calls.
    """

    message: str
    agent: str = "plain"
    status: str = "completed"
    answer: str = ""
    begins: bool = False
    requests: int = 1
    calls: int = 0


@dataclass
class Running:
    """A submitted turn and what a client has seen of it, and when (seconds of the monotonic clock).

    mark: stands in its message and nowhere else.
    """

    planned: Planned
    turn: Turn
    mark: str
    seen: list[Chunk] = field(default_factory=list[Chunk])
    times: list[float] = field(default_factory=list[float])
    over: asyncio.Future[None] | None = None

    async def follow(self) -> None:
        async for chunk in self.turn.stream():
            self.seen.append(chunk)
            self.times.append(time.monotonic())

    def silence(self, since: float) -> float:
        """The longest time from `since` on in which the client saw nothing new, in seconds."""
        moments = [since, *(moment for moment in self.times if moment > since)]
        return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)

    async def shows(self, words: int) -> None:
        """Waits until the client has seen so many pieces of text."""
        await until(lambda: sum(chunk.type == "text-delta" for chunk in self.seen) >= words, f"{words} pieces of text")


@dataclass
class Stage:
    """The system. thread: where turns run that name no other. target: Temporal's address as its workers know it."""

    services: Services
    chat: ChatClient
    store: Store
    store_url: str
    folder: Path
    queue: str
    thread: str
    dice: random.Random
    target: str
    workers: list[WorkerProcess] = field(default_factory=list[WorkerProcess])
    turns: list[Running] = field(default_factory=list[Running])

    async def start_worker(self, **extra: str) -> WorkerProcess:
        environment = {
            "EVERTURN_TARGET": self.target,
            "EVERTURN_TASK_QUEUE": self.queue,
            "EVERTURN_STORE": self.store_url,
            "CHAOS_MODEL_URL": self.services.model.base_url,
            "CHAOS_EFFECTS": str(self.folder / "effects.txt"),
            **extra,
        }
        log = self.folder / f"worker-{len(self.workers)}.log"
        worker = await self.services.nursery.start(environment, log)
        self.workers.append(worker)
        return worker

    async def submit(self, planned: Planned, thread: str | None = None) -> Running:
        """Submits a turn and follows its stream from now on, as a client would."""
        mark = f"mark-{self.queue}-{len(self.turns)}"
        chat = self.chat
        turn = await chat.submit(thread or self.thread, f"{planned.message} {mark}", agent=planned.agent)
        running = Running(planned, turn, mark)
        running.over = asyncio.ensure_future(running.follow())
        self.turns.append(running)
        return running

    async def ended(self) -> None:
        """Waits until every submitted turn is over for its client."""
        following = [running.over for running in self.turns if running.over]
        done, late = await asyncio.wait(following, timeout=WAIT) if following else (set(), set())
        for task in done:
            task.result()
        if late:
            raise AssertionError(f"{len(late)} of {len(following)} turns did not end within {WAIT:g} s")

    async def closed(self, running: Running) -> WorkflowExecutionStatus | None:
        """Waits until the turn's workflow is over; how it ended."""
        handle = self.services.client.get_workflow_handle(running.turn.workflow_id)
        async with asyncio.timeout(WAIT):
            while (status := (await handle.describe()).status) == WorkflowExecutionStatus.RUNNING:
                await asyncio.sleep(LOOK)
        return status

    def effects(self) -> list[tuple[str, str]]:
        """What the agents did to the world: kind and idempotency key."""
        file = self.folder / "effects.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(kind, key) for kind, _, key in (line.partition(" ") for line in lines)]

    async def close(self) -> None:
        for running in self.turns:
            if running.over:
                running.over.cancel()
                await asyncio.gather(running.over, return_exceptions=True)
        for worker in self.workers:
            worker.resume()
            worker.kill()
            await worker.wait()


@asynccontextmanager
async def open_stage(
    services: Services, store_url: str, folder: Path, dice: random.Random, target: str | None = None
) -> AsyncIterator[Stage]:
    """A system without workers on a store that has its tables."""
    store = await Store.open(store_url)
    queue = f"chaos-{uuid.uuid4().hex[:12]}"
    chat = await ChatClient.connect(services.client, task_queue=queue, store=store)
    stage = Stage(services, chat, store, store_url, folder, queue, f"thread-{queue}", dice, target or services.temporal)
    try:
        yield stage
    finally:
        await stage.close()
        await store.close()


async def until(done: Callable[[], bool], what: str, limit: float = WAIT) -> None:
    """Waits for a condition that nobody announces; raises AssertionError when its time is over."""
    started = time.monotonic()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit):
            while not done():
                await asyncio.sleep(LOOK)
            return
    raise AssertionError(f"not within {time.monotonic() - started:.0f} s: {what}")
