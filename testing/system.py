"""A running Everturn for tests: worker and client in this process, real Temporal, a store in a temporary file."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import uuid
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from everturn.activities.models.direct.endpoints import Endpoint
from everturn.activities.models.direct.lane import OpenAILane
from everturn.activities.models.lanes import ModelLanes, ResolvedModel
from everturn.activities.models.prices import load_prices
from everturn.activities.models.types import Delta, ModelLane, ModelRequest
from everturn.activities.scripted.log import CALLER_HEADER, LogRecord
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.client.chat import ChatClient
from everturn.client.turn import Turn
from everturn.errors import BadInput, ResultTimeout
from everturn.hooks.agent import Agent, Lane, Model
from everturn.ids import workflow_id
from everturn.messages import UserMessage
from everturn.settings import Settings
from everturn.store.store import Store
from everturn.testing.crash import Crash, CrashInterceptor
from everturn.testing.model import Answer, ScriptedModel, ScriptPlayer, as_model
from everturn.testing.run import TurnRun
from everturn.testing.server import connect
from everturn.worker.plugin import EverturnPlugin

WAIT: Final = 30.0
"""Seconds after which a turn that should have ended fails its test."""
_GRACE: Final = 0.5
"""Seconds that a stopping worker leaves to what still runs: the test is over, nobody needs it."""


@dataclass(frozen=True)
class System:
    """What a test has at hand. chat: the client that an application would use. client: Temporal's. task_queue: of the
    worker, and of this system alone."""

    chat: ChatClient
    store: Store
    client: Client
    task_queue: str
    agents: tuple[str, ...]
    _model_server: ScriptedModelServer | None
    _player: ScriptPlayer | None
    _crashes: CrashInterceptor

    async def run_turn(
        self,
        text: UserMessage,
        *,
        agent: str | None = None,
        thread_id: str | None = None,
        timeout: float = WAIT,  # noqa: ASYNC109 - of the turn, not of this call alone
        **options: Any,
    ) -> TurnRun:
        """Submits a message and waits for the turn's end and its last hook.

        agent: needed only where the system has several. thread_id: a new thread by default. options: those of
        `ChatClient.submit`. Raises ResultTimeout after `timeout` seconds, AssertionError if the turn asked the scripted
        model for more than it has answers.
        """
        thread = thread_id or f"thread-{uuid.uuid4().hex[:8]}"
        turn = await self.chat.submit(thread, text, agent=agent or self._only_agent(), **options)
        return await self.finished(turn, timeout)

    async def finished(self, turn: Turn, timeout: float = WAIT) -> TurnRun:  # noqa: ASYNC109
        """The same for a turn that was submitted with `chat`: after an approval or a cancel, say."""
        handle = self.client.get_workflow_handle(workflow_id(turn.request_id))
        try:
            async with asyncio.timeout(timeout):
                with contextlib.suppress(WorkflowFailureError):  # a turn that ends as an error; the result tells it
                    await handle.result()
                if self._player and turn.workflow_id in self._player.ended:
                    raise AssertionError(self._player.ended[turn.workflow_id])
                return TurnRun(
                    result=await turn.result(),
                    info=await turn.info(),
                    chunks=[chunk async for chunk in turn.stream()],
                    prompts=[record.body for record in self._asked(turn)],
                    history=await handle.fetch_history(),
                )
        except TimeoutError as error:
            raise ResultTimeout(turn.request_id, timeout) from error

    @property
    def pending_crashes(self) -> list[str]:
        """The crashes that were ordered and have not happened yet."""
        return self._crashes.pending

    def _only_agent(self) -> str:
        if len(self.agents) != 1:
            raise BadInput(f"this system has the agents {', '.join(self.agents)}; say which: run_turn(…, agent=…)")
        return self.agents[0]

    def _asked(self, turn: Turn) -> list[LogRecord]:
        requests = self._model_server.requests if self._model_server else []
        return [record for record in requests if record.headers.get(CALLER_HEADER) == turn.workflow_id]


@asynccontextmanager
async def running(
    *agents: Agent,
    model: ScriptedModel | Answer | Sequence[Answer] | None = None,
    crashes: Sequence[Crash] = (),
    client: Client | None = None,
) -> AsyncGenerator[System]:
    """Runs agents until the block ends: `async with running(Support(), model="Hello.") as system`.

    model: what every model of these agents says, whatever its name; None asks the models that the agents name. crashes:
    where the worker is to lose its work. client: a Temporal to use; by default one server is started for this process,
    or EVERTURN_TEST_TEMPORAL names one. Raises InvalidAgent, also for a `configure_session` that fails.
    """
    async with AsyncExitStack() as stack:
        temporal = client or await connect()
        folder = await asyncio.to_thread(stack.enter_context, tempfile.TemporaryDirectory(prefix="everturn-test-"))
        store = await Store.open(f"sqlite:///{Path(folder) / 'store.db'}", create=True)
        stack.push_async_callback(store.close)
        player = server = None
        if model is not None:
            await asyncio.to_thread(load_prices)  # so that every turn of a test has its price
            player = ScriptPlayer(as_model(model))
            server = await stack.enter_async_context(ScriptedModelServer(play=player.moves))
        queue = f"test-{uuid.uuid4().hex}"
        plugin = EverturnPlugin(
            agents,
            store,
            settings=Settings(task_queue=queue, graceful_shutdown=_GRACE),
            lanes=ScriptedLanes(server.base_url) if server else None,
        )
        crashing = CrashInterceptor(crashes)
        worker = Worker(temporal, task_queue=queue, plugins=[plugin], interceptors=[crashing])
        await stack.enter_async_context(_working(worker, plugin))
        chat = await ChatClient.connect(temporal, task_queue=queue, store=store)
        yield System(chat, store, temporal, queue, tuple(agent.name for agent in agents), server, player, crashing)


async def run_turn(
    agent: Agent,
    text: UserMessage,
    *,
    model: ScriptedModel | Answer | Sequence[Answer] | None = None,
    crashes: Sequence[Crash] = (),
    client: Client | None = None,
    **options: Any,
) -> TurnRun:
    """One turn in a system of its own; arguments as of `running` and `System.run_turn`."""
    async with running(agent, model=model, crashes=crashes, client=client) as system:
        return await system.run_turn(text, **options)


@asynccontextmanager
async def _working(worker: Worker, plugin: EverturnPlugin) -> AsyncGenerator[None]:
    """Raises what ends the worker, also at its start."""
    running_worker = asyncio.ensure_future(worker.run())
    ready = asyncio.ensure_future(plugin.ready.wait())
    try:
        await asyncio.wait({ready, running_worker}, timeout=WAIT, return_when=asyncio.FIRST_COMPLETED)
        if not running_worker.done():
            yield
    finally:
        ready.cancel()
        if not running_worker.done():
            await worker.shutdown()
        await running_worker


class ScriptedLanes(ModelLanes):
    """Sends every request to the scripted server, whatever model the agent or a hook has chosen."""

    def __init__(self, base_url: str) -> None:
        super().__init__()
        self._base_url = base_url
        self._scripted = OpenAILane(self._litellm, everything=Endpoint(needs_key=False))

    async def resolve(
        self,
        model: str,
        *,
        api_base: str | None = None,  # noqa: ARG002 - where the model would be asked in earnest
        api_key_env: str | None = None,  # noqa: ARG002
        lane: Lane | None = None,  # noqa: ARG002
    ) -> ResolvedModel:
        """See base class."""
        return ResolvedModel(_SignedLane(self._scripted), model, self._base_url)

    async def warm_up(self, models: Iterable[Model]) -> None:  # noqa: ARG002 - they are not asked
        """See base class."""
        await self._scripted.warm_up()

    async def close(self) -> None:
        """See base class."""
        await self._scripted.close()
        await super().close()


class _SignedLane:
    """Tells the server which turn asks."""

    def __init__(self, inner: ModelLane) -> None:
        self._inner = inner

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """See ModelLane."""
        headers = {**request.headers, CALLER_HEADER: activity.info().workflow_id or ""}
        return self._inner.stream(replace(request, headers=headers))
