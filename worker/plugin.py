"""The Temporal plugin: everything that a worker needs to run chat turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, cast

from temporalio.plugin import SimplePlugin
from temporalio.worker import Worker, WorkerConfig

from everturn.activities.compaction import CompactActivities
from everturn.activities.ending_points import EndingPointActivities
from everturn.activities.hook_points import HookPointActivities
from everturn.activities.local_runs import LocalRuns, LocalRunsInterceptor
from everturn.activities.model_step import ModelStepActivities
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.models.litellm_module import load_litellm
from everturn.activities.pulse import Pulse, PulseInterceptor
from everturn.activities.reconciling import ReconcileActivities
from everturn.activities.services import Services
from everturn.activities.sizes import SizeInterceptor
from everturn.activities.takeover import TakeoverInterceptor
from everturn.activities.tool import ToolActivities
from everturn.activities.tool_points import ToolPointActivities
from everturn.activities.turn import TurnActivities
from everturn.activities.waiting import WaitActivities
from everturn.errors import StoreUnavailable
from everturn.hooks.agent import Agent
from everturn.hooks.points import CLASSIFY_CHAT_ERROR
from everturn.hooks.registry import AgentRegistry
from everturn.settings import DEFAULT_STORE, Settings, settings_from
from everturn.store.records import Room
from everturn.store.room import room_of
from everturn.store.store import Store
from everturn.worker.limits import apply_limits, replace_default
from everturn.worker.versioning import WORKFLOWS, apply_deployment, deployment_of
from everturn.worker.watch import LoopWatch

logger = logging.getLogger("everturn.worker")

HEARTBEAT_THROTTLE: Final = timedelta(seconds=0.5)
"""Shorter than the time between two beats, so that none is held back. With the SDK's default of 30 s a cancel took 24 s
to arrive."""
STICKY_TIMEOUT: Final = timedelta(seconds=2)
"""How long a turn's next task waits for the worker that has it in its cache before any other worker may take it."""
PRUNE_EVERY: Final = 600.0
"""Seconds between two looks for stream events that are past their retention."""


class EverturnPlugin(SimplePlugin):
    """Adds the workflows and activities of chat turns to a `temporalio.worker.Worker`.

    store: a URL, or an open Store (it stays open); default: EVERTURN_STORE, then sqlite:///everturn.db. create_store:
    make or upgrade its tables at start. lanes: how models are reached; default by the settings. Everything else about
    the worker is the caller's, and so are the client's data converter and codecs; only settings that cancelling and
    recovery depend on are changed where they have the SDK's default: the heartbeat throttle (0.5 s), the sticky timeout
    (2 s), the graceful shutdown timeout (30 s); and so are the limits of the settings (a tuner of the caller's wins).
    With a build id, from the settings or the caller's own deployment_config, turns are pinned to the build that they
    begin on.

    ready: set when the worker runs. Raises InvalidAgent at once, StoreUnavailable when the worker starts.
    """

    def __init__(
        self,
        agents: Iterable[Agent],
        store: str | Store | None = None,
        *,
        settings: Settings | None = None,
        create_store: bool = False,
        lanes: ModelLanes | None = None,
    ) -> None:
        self._settings = settings or settings_from()
        self._given = store if store is not None else self._settings.store or DEFAULT_STORE
        self._create_store = create_store
        self._deployment = deployment_of(self._settings)
        self.ready = asyncio.Event()
        self._store: Store | None = None
        self._pulse = Pulse()
        self._local_runs = LocalRuns()
        self._watch: LoopWatch | None = None
        self._services = Services(
            AgentRegistry(agents),
            lanes or ModelLanes(self._settings.model_lane),
            ThreadPoolExecutor(self._settings.max_threads, thread_name_prefix="everturn"),
        )
        super().__init__(
            "everturn",
            workflows=WORKFLOWS,
            activities=activities_of(self._services, room_of(self._settings)),
            run_context=self._running,
            interceptors=[
                LocalRunsInterceptor(self._local_runs, self._services.running),
                PulseInterceptor(self._pulse),
                TakeoverInterceptor(),
                SizeInterceptor(),
            ],
        )

    @property
    def store(self) -> Store | None:
        """The worker's store while it is open."""
        return self._store

    @property
    def running_turns(self) -> int:
        """Turns that have a step or a tool running in this process."""
        return self._services.running.turns

    @property
    def stalls(self) -> int:
        """How often the event loop stood still for more than 200 ms since the worker runs."""
        return self._watch.stalls if self._watch else 0

    @property
    def longest_stall_ms(self) -> int:
        return self._watch.longest_ms if self._watch else 0

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:  # noqa: A002
        """See base class."""
        watch = self._watch = LoopWatch(worker, self._pulse)
        watch.start()
        try:
            await super().run_worker(worker, next)
        finally:
            watch.stop()

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """See base class."""
        changed = cast(dict[str, Any], super().configure_worker(config))
        throttle_defaults = {
            "max_heartbeat_throttle_interval": timedelta(seconds=60),
            "default_heartbeat_throttle_interval": timedelta(seconds=30),
        }
        for name, default in throttle_defaults.items():
            replace_default(changed, name, default, HEARTBEAT_THROTTLE)
        replace_default(changed, "sticky_queue_schedule_to_start_timeout", timedelta(seconds=10), STICKY_TIMEOUT)
        graceful = timedelta(seconds=self._settings.graceful_shutdown)
        replace_default(changed, "graceful_shutdown_timeout", timedelta(), graceful)
        self._services.grace = changed["graceful_shutdown_timeout"].total_seconds()
        apply_limits(changed, self._settings)
        apply_deployment(changed, self._deployment)
        return cast(WorkerConfig, changed)

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        """Open store, warm models and pruning for as long as the worker runs."""
        await self._services.agents.configure(self._services.threads)
        opened = None
        if not isinstance(self._given, Store):
            opened = await Store.open(
                self._given,
                create=self._create_store,
                flush=self._settings.stream_flush,
                timeout=self._settings.store_timeout,
                connections=self._settings.store_connections,
            )
        store = self._store = opened or cast(Store, self._given)
        self._services.use_store(store)
        self.ready.set()
        background = [asyncio.ensure_future(self._warm_up()), asyncio.ensure_future(self._prune(store))]
        try:
            yield
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await self._local_runs.close()
            self._services.use_store(None)
            self._store = None
            await self._services.lanes.close()
            self._services.threads.shutdown(wait=False, cancel_futures=True)
            if opened is not None:
                await opened.close()

    async def _warm_up(self) -> None:
        try:
            await self._services.lanes.warm_up([agent.model for agent in self._services.agents])
            if any(CLASSIFY_CHAT_ERROR in agent.chains for agent in self._services.agents):
                await asyncio.to_thread(load_litellm)  # a classifier is given litellm's exceptions
        except ImportError:
            logger.exception("the model layer cannot be loaded; model steps will fail")

    async def _prune(self, store: Store) -> None:
        while True:
            try:
                pruned = await store.prune_events(self._settings.event_retention)
                if pruned:
                    logger.info("pruned the stream events of %d ended turns", pruned)
            except StoreUnavailable as error:
                logger.warning("stream events were not pruned: %s", error)
            await asyncio.sleep(PRUNE_EVERY)


def activities_of(services: Services, room: Room) -> Sequence[Callable[..., Any]]:
    """Every activity of a turn. room: how many turns may wait."""
    turn, hooks, ending = TurnActivities(services, room), HookPointActivities(services), EndingPointActivities(services)
    tool_points, waits = ToolPointActivities(services), WaitActivities(services)
    reconciling = ReconcileActivities(services)
    return [
        turn.begin,
        turn.finish,
        turn.interrupt,
        turn.check_predecessor,
        hooks.before_turn,
        hooks.before_step,
        hooks.on_step_finish,
        ModelStepActivities(services).model_step,
        CompactActivities(services).compact,
        tool_points.before_tool_call,
        tool_points.after_tool_call,
        ToolActivities(services).run_tool,
        waits.open_wait,
        waits.resolve_wait,
        ending.on_chat_error,
        ending.on_chat_response,
        ending.on_turn_end,
        reconciling.reconcile,
        reconciling.sweep_drafts,
        reconciling.find_lost,
    ]
