"""`everturn worker`: a worker for agents of the author's modules."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from everturn.errors import BadInput
from everturn.modules import module_path
from everturn.worker.child import end_child, spawn_child
from everturn.worker.cli.interrupts import stop_requested
from everturn.worker.cli.loading import load_agents
from everturn.worker.cli.options import Places, WorkerOptions
from everturn.worker.cli.running import DONE

RESTART_PATIENCE = 10.0  # long enough to hand running steps over; a developer waits for the new code
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


async def work(specs: Sequence[str], places: Places, options: WorkerOptions) -> int:
    """Runs a worker until SIGINT or SIGTERM, then lets running steps go on or hands them over."""
    from everturn.worker.run import run_worker

    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stderr)
    agents = load_agents(specs)
    settings = places.settings(options.given)
    await run_worker(agents=agents, settings=settings, store=settings.store)
    return DONE


async def work_and_reload(specs: Sequence[str], places: Places, options: WorkerOptions) -> int:
    """Keeps a worker process on the newest code: a change of a Python file beside the modules restarts it.

    A worker that ends by itself, for a syntax error say, is started again after the next change.
    """
    folders = watched_folders(specs)
    arguments = ["-m", "everturn.worker", "worker", *specs]
    environment = {**os.environ, **places.environment, **options.environment}
    async with stop_requested() as stop:
        changes = _changes(folders, stop)
        while not stop.is_set():
            worker = await spawn_child(sys.executable, arguments, environment=environment)
            try:
                what = await anext(changes, None)
                if what is not None:
                    sys.stderr.write(f"everturn: {what} changed, restarting the worker\n")
            finally:
                await end_child(worker, RESTART_PATIENCE, "the worker")
    return DONE


def watched_folders(specs: Sequence[str]) -> list[Path]:
    """The folders whose Python files belong to the modules: a file's own, or the one that a module is searched in."""
    folders = {(path.parent if (path := module_path(spec)) else Path()).resolve() for spec in specs}
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise BadInput(f"there is no folder {missing[0]}; check the path of the module")
    return sorted(folders)


async def _changes(folders: Sequence[Path], stop: asyncio.Event) -> AsyncGenerator[str]:
    import watchfiles

    async for batch in watchfiles.awatch(  # pyright: ignore[reportUnknownMemberType] - its stop_event is half annotated
        *folders, watch_filter=watchfiles.PythonFilter(), stop_event=stop
    ):
        yield ", ".join(sorted({Path(path).name for _, path in batch}))
