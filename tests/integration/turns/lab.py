"""A running system for one test: worker and client in this process, real Temporal, store and model server."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from everturn import Agent, ChatClient, Chunk, EverturnPlugin, Hooks, Model, Settings, Store, Turn
from everturn.activities.scripted.log import LogRecord
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id

WAIT = 30.0
"""Seconds after which a turn that should have ended fails its test."""


@dataclass
class Lab:
    """What a test has at hand."""

    chat: ChatClient
    store: Store
    client: Client
    model_server: ScriptedModelServer
    task_queue: str
    store_url: str
    workers: list[Worker] = field(default_factory=list[Worker])

    def thread(self) -> str:
        return f"thread-{uuid.uuid4().hex[:8]}"

    async def run(self, thread: str, text: str, agent: str = "agent", **options: Any) -> Any:
        return await self.chat.run(thread, text, agent=agent, timeout=WAIT, **options)

    async def submit(self, thread: str, text: str, agent: str = "agent", **options: Any) -> Turn:
        return await self.chat.submit(thread, text, agent=agent, **options)

    async def play(self, script: str, thread: str | None = None, **options: Any) -> Turn:
        """Submits a scenario; the thread's name is part of the message, so that `asked` finds the requests."""
        thread = thread or self.thread()
        return await self.submit(thread, f"[[{script}]] {thread}", **options)

    def asked(self, turn: Turn) -> list[LogRecord]:
        """The requests that the model server got for the thread of a turn."""
        return self.requests(turn.thread_id)

    async def until(self, turn: Turn, kind: str) -> Chunk:
        """The turn's first chunk of this type."""
        async with asyncio.timeout(WAIT), aclosing(turn.stream()) as stream:  # type: ignore[type-var]  # a generator
            async for chunk in stream:
                if chunk.type == kind:
                    return chunk
        raise AssertionError(f"the stream ended without {kind}")

    async def storeless(self) -> ChatClient:
        """A client that reaches Temporal only."""
        return await ChatClient.connect(self.client, task_queue=self.task_queue)

    def stored_text(self) -> str:
        """Every row of the SQLite store as SQL."""
        with sqlite3.connect(self.store_url.removeprefix("sqlite:///")) as connection:
            return "\n".join(connection.iterdump())

    async def raw_history(self, turn: Turn) -> str:
        """The turn's whole history as Temporal has it, payloads included; waits for its workflow's end, which comes
        after the client's."""
        handle = self.client.get_workflow_handle(workflow_id(turn.request_id))
        async with asyncio.timeout(WAIT):
            events = [event async for event in handle.fetch_history_events(wait_new_event=True)]
        return "\n".join(event.SerializeToString().decode(errors="replace") for event in events)

    async def chunks(self, turn: Turn, after: int = 0) -> list[Chunk]:
        async with asyncio.timeout(WAIT):
            return [chunk async for chunk in turn.stream(after)]

    def requests(self, text: str) -> list[LogRecord]:
        """Requests whose conversation contains this text."""
        return [r for r in self.model_server.requests if text in json.dumps(r.body, ensure_ascii=False)]

    async def history(self, turn: Turn) -> list[Any]:
        handle = self.client.get_workflow_handle(workflow_id(turn.request_id))
        return [event async for event in handle.fetch_history_events()]


def shown_text(chunks: Sequence[Chunk]) -> str:
    """The text that a client shows in the end: without the attempts that were declared void."""
    void = {(c.data["step"], c.data["attempt"]) for c in chunks if c.type == "data-reset"}
    return "".join(c.data["delta"] for c in chunks if c.type == "text-delta" and (c.step, c.attempt) not in void)


async def eventually(check: Callable[[], Awaitable[bool]], what: str, seconds: float = WAIT) -> None:
    """Waits for a condition that nobody announces."""
    try:
        async with asyncio.timeout(seconds):
            while not await check():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}") from None


def scripted(server: ScriptedModelServer) -> Model:
    """The model whose scenario rides in the user's message."""
    return Model("openai/scripted", api_base=server.base_url)


def make_agent(
    server: ScriptedModelServer,
    *,
    name: str = "agent",
    tools: Sequence[Any] = (),
    hooks: Sequence[Hooks] = (),
    base: type[Agent] = Agent,
    **attributes: Any,
) -> Agent:
    """An agent on the scripted model."""
    given = {"name": name, "model": scripted(server), "tools": tuple(tools), "hooks": tuple(hooks), **attributes}
    agent: Agent = type("LabAgent", (base,), given)()
    return agent


@asynccontextmanager
async def running_lab(
    client: Client,
    server: ScriptedModelServer,
    task_queue: str,
    store_url: str,
    agents: Sequence[Agent],
    *,
    workers: int = 1,
    **settings: Any,
) -> AsyncIterator[Lab]:
    """Starts the workers and the client; stops them all."""
    given = Settings(task_queue=task_queue, store=store_url, **settings)
    store = await Store.open(store_url, create=True)
    plugins = [EverturnPlugin(agents, store_url, settings=given) for _ in range(workers)]
    started = [Worker(client, task_queue=task_queue, plugins=[plugin]) for plugin in plugins]
    running = [asyncio.ensure_future(worker.run()) for worker in started]
    try:
        for plugin, task in zip(plugins, running, strict=True):
            ready = asyncio.ensure_future(plugin.ready.wait())
            await asyncio.wait({ready, task}, timeout=WAIT, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            if task.done():
                task.result()
        previews = given.history_previews
        chat = await ChatClient.connect(client, task_queue=task_queue, store=store, history_previews=previews)
        yield Lab(chat, store, client, server, task_queue, store_url, started)
    finally:
        await asyncio.gather(
            *(worker.shutdown() for worker, task in zip(started, running, strict=True) if not task.done()),
            return_exceptions=True,
        )
        await asyncio.gather(*running, return_exceptions=True)
        await store.close()
