"""What can be lost for a while, other than by a crash at a chosen place: a worker, the network, Temporal, the store.

Each outage is one system in which some turns stream when it begins. Used by the tests, and measured by
`python -m benchmarks.recovery`.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from temporalio.client import Client

from everturn import Store
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions
from tests.chaos.checks import complaints
from tests.chaos.databases import Databases
from tests.chaos.scenarios import words
from tests.chaos.stage import WAIT, Planned, Running, Services, Stage, open_stage, until
from tests.services.postgres import postgres_server
from tests.services.proxy import open_proxy

Strike = Callable[[], Awaitable[None]]
"""Makes the outage happen, from its begin to its end."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What an outage is made on. folder: its own."""

    services: Services
    databases: Databases
    folder: Path


@dataclass(frozen=True, slots=True)
class Outage:
    """One kind. seconds: how long something is away, at most; 0 for a worker that does not come back.

    tokens: words of each answer, 20 a second. extra: model calls that it may cost each turn. prepare: opens the system,
    with its workers, and tells how the outage is made.
    """

    name: str
    seconds: float
    tokens: int
    extra: int
    prepare: Callable[[Ground, float], AsyncIterator[tuple[Stage, Strike]]]


@dataclass(frozen=True, slots=True)
class Suffered:
    """What came of one outage. silences: for each turn the longest time in which its client saw nothing, in seconds."""

    silences: list[float]
    faults: list[str]


async def suffer(outage: Outage, ground: Ground, turns: int) -> Suffered:
    """Lets turns stream, makes the outage happen, waits for their ends and looks at what is left."""
    async with asynccontextmanager(outage.prepare)(ground, outage.seconds) as (stage, strike):
        planned = Planned(f"[[text tokens={outage.tokens} delay_ms=50]]", answer=words(outage.tokens))
        streaming = [await stage.submit(planned, f"{stage.thread}-{number}") for number in range(turns)]
        for running in streaming:
            await running.shows(3)
        began = time.monotonic()
        await strike()
        await stage.ended()
        found: list[str] = []
        for running in streaming:
            found += await complaints(_only(stage, running), outage.extra)
        return Suffered([running.silence(began) for running in streaming], found)


def _only(stage: Stage, running: Running) -> Stage:
    """The same system as if there were no other turn."""
    return replace(stage, turns=[running], thread=running.turn.thread_id)


@asynccontextmanager
async def _plain(ground: Ground, **options: str | None) -> AsyncIterator[Stage]:
    dice = random.Random(0)
    async with (
        ground.databases.fresh("sqlite", ground.folder) as url,
        open_stage(ground.services, url, ground.folder, dice, **options) as stage,
    ):
        yield stage


async def kill(ground: Ground, _seconds: float) -> AsyncIterator[tuple[Stage, Strike]]:
    """One of two workers dies without a word: the one that has all turns."""
    async with _plain(ground) as stage:
        first = await stage.start_worker()

        async def strike() -> None:
            await stage.start_worker()
            first.kill()

        yield stage, strike


async def stop(ground: Ground, _seconds: float) -> AsyncIterator[tuple[Stage, Strike]]:
    """One of two workers is told to stop."""
    async with _plain(ground) as stage:
        first = await stage.start_worker()

        async def strike() -> None:
            second = await stage.start_worker()
            await until(lambda: "polls task queue" in second.log.read_text(), "a worker that polls")
            first.terminate()
            assert await first.wait() == 0

        yield stage, strike


async def pause(ground: Ground, seconds: float) -> AsyncIterator[tuple[Stage, Strike]]:
    """The worker that has all turns stands still, another one takes them over, and then the first one goes on."""
    async with _plain(ground) as stage:
        first = await stage.start_worker()

        def overtaken() -> bool:
            return all(any(chunk.type == "data-reset" for chunk in running.seen) for running in stage.turns)

        async def strike() -> None:
            await stage.start_worker()
            first.pause()
            await until(overtaken, "another worker that has taken over every turn", seconds)
            first.resume()

        yield stage, strike


async def cut_network(ground: Ground, seconds: float) -> AsyncIterator[tuple[Stage, Strike]]:
    """The worker reaches its model and its store, and for a while nothing of what it says to Temporal arrives."""
    async with open_proxy(ground.services.temporal) as proxy, _plain(ground, target=proxy.address) as stage:
        await stage.start_worker()

        async def strike() -> None:
            proxy.swallow()
            await asyncio.sleep(seconds)
            proxy.heal()

        yield stage, strike


async def drop_network(ground: Ground, seconds: float) -> AsyncIterator[tuple[Stage, Strike]]:
    """The same with connections that are reset, and refused meanwhile."""
    async with open_proxy(ground.services.temporal) as proxy, _plain(ground, target=proxy.address) as stage:
        await stage.start_worker()

        async def strike() -> None:
            proxy.drop()
            await asyncio.sleep(seconds)
            proxy.heal()

        yield stage, strike


async def restart_temporal(ground: Ground, seconds: float) -> AsyncIterator[tuple[Stage, Strike]]:
    """The Temporal server stops and comes back with its state from disk, at the same address."""
    async with AsyncExitStack() as stack:
        options = ServerOptions(state_file=ground.folder / "temporal.db", ui=False)
        server = EmbeddedServer(options)
        await server.start()
        stack.push_async_callback(server.stop)
        port = int(server.address.rpartition(":")[2])
        client = await Client.connect(server.address)
        services = replace(ground.services, temporal=server.address, client=client)
        stage = await stack.enter_async_context(_plain(replace(ground, services=services)))
        await stage.start_worker()

        async def strike() -> None:
            await server.stop()
            await asyncio.sleep(seconds)
            again = EmbeddedServer(replace(options, port=port))
            stack.push_async_callback(again.stop)
            await again.start()

        yield stage, strike


async def restart_postgres(ground: Ground, seconds: float) -> AsyncIterator[tuple[Stage, Strike]]:
    """The store's server stops, with every connection, and comes back."""
    async with AsyncExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, postgres_server())
        url = await asyncio.to_thread(stack.enter_context, server.service.database())
        store = await Store.open(url, create=True)
        await store.close()
        services, folder = ground.services, ground.folder
        stage = await stack.enter_async_context(open_stage(services, url, folder, random.Random(0)))
        await stage.start_worker()

        async def strike() -> None:
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(seconds)
            await asyncio.to_thread(server.start)

        yield stage, strike


async def lock_sqlite(ground: Ground, seconds: float) -> AsyncIterator[tuple[Stage, Strike]]:
    """Another process holds the write lock of the store's file."""
    async with _plain(ground) as stage:
        await stage.start_worker()

        async def strike() -> None:
            connection = sqlite3.connect(stage.store_url.removeprefix("sqlite:///"), isolation_level=None)
            async with asyncio.timeout(WAIT):
                await _locked(connection)
            await asyncio.sleep(seconds)
            connection.execute("ROLLBACK")
            connection.close()

        yield stage, strike


async def _locked(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA busy_timeout = 50")
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            await asyncio.sleep(0.01)
        else:
            return


OUTAGES = (
    Outage("a worker is killed with -9", 0.0, 60, 1, kill),
    Outage("a worker is stopped by SIGTERM", 0.0, 60, 1, stop),
    Outage("a worker is paused, overtaken and resumed", 40.0, 60, 1, pause),
    Outage("no packet between worker and Temporal", 3.0, 60, 1, cut_network),
    Outage("no packet between worker and Temporal, for longer", 8.0, 60, 1, cut_network),
    Outage("connections to Temporal reset", 3.0, 30, 1, drop_network),
    Outage("Temporal restarts", 1.0, 30, 1, restart_temporal),
    Outage("PostgreSQL restarts", 8.0, 30, 0, restart_postgres),
    Outage("the SQLite file is locked", 8.0, 30, 0, lock_sqlite),
)
