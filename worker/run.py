"""A worker process from its settings: connect, run, drain."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import RPCError
from temporalio.worker import Worker

from everturn.connection import connect_temporal, place_of
from everturn.hooks.agent import Agent
from everturn.settings import Settings, settings_from
from everturn.store.store import Store
from everturn.worker.health import HealthServer
from everturn.worker.payload_visits import skip_idle_walks
from everturn.worker.plugin import EverturnPlugin
from everturn.worker.versioning import pollers_of, set_current
from everturn.worker.vitals import Vitals

logger = logging.getLogger("everturn.worker")


async def run_worker(  # noqa: PLR0913 - by name only, and all can be left out
    agents: Iterable[Agent],
    *,
    client: Client | None = None,
    target: str | None = None,
    namespace: str | None = None,
    task_queue: str | None = None,
    store: str | Store | None = None,
    data_converter: DataConverter | None = None,
    create_store: bool = False,
    deployment_name: str | None = None,
    build_id: str | None = None,
    settings: Settings | None = None,
    started: asyncio.Event | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Runs turns until SIGTERM or SIGINT (with `stop`: until it is set), then hands running steps over and returns.

    What is not given comes from `settings`, if given, otherwise from EVERTURN_… environment variables, then Temporal's
    own, then the defaults. started: set when the worker polls. With `health_port` in the settings, /healthz and /readyz
    answer there. deployment_name, build_id: for worker versioning, see docs/changing-the-workflow.md. Raises
    InvalidAgent, TemporalUnavailable or StoreUnavailable.
    """
    given = {"target": target, "namespace": namespace, "task_queue": task_queue}
    given |= {"deployment_name": deployment_name, "build_id": build_id}
    if settings is None:
        settings = settings_from(**given)
    else:
        settings = settings.model_copy(update={name: value for name, value in given.items() if value is not None})
    skip_idle_walks()
    plugin = EverturnPlugin(agents, store, settings=settings, create_store=create_store)
    temporal = client or await connect_temporal(settings, data_converter=data_converter)
    worker = Worker(temporal, task_queue=settings.task_queue, plugins=[plugin])
    stopping = stop or asyncio.Event()
    if stop is None:
        _on_signals(stopping)
    async with _health(settings, Vitals(plugin, worker, temporal, stopping)):
        await _run(worker, plugin, settings, stopping, started)


async def _run(
    worker: Worker, plugin: EverturnPlugin, settings: Settings, stopping: asyncio.Event, started: asyncio.Event | None
) -> None:
    running = asyncio.ensure_future(worker.run())
    await _first(running, plugin.ready)
    if not running.done():
        gc.collect()
        gc.freeze()  # what is loaded stays; each full collection would stop all turns to walk over it
        logger.info("worker polls task queue %r at %s", settings.task_queue, place_of(worker.client).target)
        await _say_which_build(worker.client, settings)
        if started is not None:
            started.set()
        await _first(running, stopping)
    if not running.done():
        logger.info("worker drains: running steps have %g s", settings.graceful_shutdown)
        await worker.shutdown()
    await running


async def _say_which_build(client: Client, settings: Settings) -> None:
    """A new build gets no new turns until it is made current, which is easily forgotten."""
    if settings.deployment_name is None or settings.build_id is None:
        return
    build = f"build {settings.build_id} of deployment {settings.deployment_name}"
    try:
        pollers = await pollers_of(client, settings.task_queue)
    except RPCError as error:
        logger.warning("%s works; Temporal does not tell whether it is current: %s", build, error.message)
        return
    if pollers.current == (settings.deployment_name, settings.build_id):
        logger.info("%s is current: it gets new turns", build)
        return
    command = set_current(settings.deployment_name, settings.build_id)
    logger.warning("%s gets no new turns until it is made current: %s", build, command)


def _health(settings: Settings, vitals: Vitals) -> AbstractAsyncContextManager[object]:
    if settings.health_port is None:
        return nullcontext()
    probes = {"/healthz": vitals.alive, "/readyz": vitals.ready}
    return HealthServer(settings.health_host, settings.health_port, probes)


async def _first(running: asyncio.Future[None], event: asyncio.Event) -> None:
    """Waits for the event, or for the worker to end by itself."""
    waiting = asyncio.ensure_future(event.wait())
    both: set[asyncio.Future[Any]] = {running, waiting}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def _on_signals(stopping: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stopping.set)
        except (NotImplementedError, RuntimeError):  # not on Windows, not outside of the main thread
            return
