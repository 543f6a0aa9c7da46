"""`everturn worker --processes N`: several worker processes under one parent."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from collections.abc import Callable, Sequence

from everturn.hooks.agent import Agent
from everturn.settings import Settings
from everturn.worker.cli.loading import load_agents
from everturn.worker.cli.options import Places, WorkerOptions
from everturn.worker.cli.running import DONE, outcome
from everturn.worker.event_loop import run_in_loop

STOP_MARGIN = 15.0  # beyond the time that running steps have: handing over, closing connections
LOG_FORMAT = "%(asctime)s %(levelname)s [{process}] %(name)s: %(message)s"


def work_in_processes(specs: Sequence[str], places: Places, options: WorkerOptions, debug: bool) -> int:
    """Runs worker processes until SIGINT or SIGTERM, which each of them drains for, and replaces those that die."""
    from everturn.worker.preload import preload
    from everturn.worker.processes import WorkerProcesses

    _log_as("workers")
    settings = places.settings(options.given)
    agents = _agents(tuple(specs))
    preload(agents, settings)
    serve = functools.partial(_serve, tuple(specs), settings, debug)
    return WorkerProcesses(settings.processes, serve, settings.graceful_shutdown + STOP_MARGIN).run()


@functools.cache
def _agents(specs: tuple[str, ...]) -> list[Agent]:
    """A forked process has them from its parent; one that was spawned loads them."""
    return load_agents(specs)


def _serve(specs: tuple[str, ...], settings: Settings, debug: bool, number: int, ready: Callable[[], None]) -> int:
    """One worker process."""
    _log_as(f"worker {number}")
    if settings.health_port:  # 0 is any free port, for each its own
        settings = settings.model_copy(update={"health_port": settings.health_port + number - 1})
    return outcome(lambda: run_in_loop(_run(_agents(specs), settings, ready)), debug)


async def _run(agents: Sequence[Agent], settings: Settings, ready: Callable[[], None]) -> int:
    from everturn.worker.run import run_worker

    started = asyncio.Event()

    async def tell() -> None:
        await started.wait()
        ready()

    telling = asyncio.create_task(tell())
    try:
        await run_worker(agents=agents, settings=settings, store=settings.store, started=started)
    finally:
        telling.cancel()
    return DONE


def _log_as(process: str) -> None:
    form = LOG_FORMAT.format(process=process)
    logging.basicConfig(level=logging.INFO, format=form, stream=sys.stderr, force=True)
