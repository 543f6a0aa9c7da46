"""actant: a workflow per thread. Its stores and its stream live in memory, so worker and client share a process."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import openai
from actant import AgentDefinition, tool
from actant.llm.providers.openai import OpenAIProvider
from actant.runtime import AgentRuntime
from actant.runtime.stores import InMemoryRuntimeStores
from actant.tools import ToolRegistry
from temporalio.client import Client

from benchmarks.peers.protocol import MODEL_URL, SYSTEM, TEMPORAL, Answer, Call, TurnFunction
from benchmarks.peers.script import Script


@tool
async def lookup(turn: str, n: int) -> dict[str, str]:  # noqa: ARG001
    """Looks something up."""
    return {"result": f"result {n}"}


class Threads:
    """The runtime, and threads with a past."""

    def __init__(self, client: Client) -> None:
        self._client = client
        model = OpenAIProvider("fake", client=openai.AsyncOpenAI(base_url=MODEL_URL, api_key="none", max_retries=0))
        tools = ToolRegistry([lookup])
        self._agent = AgentDefinition(id="bench", name="Bench", persona=SYSTEM, llm=model, tools=tools)
        stores = InMemoryRuntimeStores()
        publisher = stores.publisher
        self.runtime = AgentRuntime(
            client=client,
            stores=stores,
            resolve_agent=self._resolve,
            event_source=publisher,
            event_sink=publisher,
        )
        self._long: dict[int, Any] = {}

    async def _resolve(self, _agent_id: str, _thread_id: Any) -> AgentDefinition:
        return self._agent

    async def thread(self, earlier: int) -> Any:
        """A new thread, or one that had so many turns: they have to be run, there is no other way into it."""
        if not earlier:
            return self.runtime.thread(self._agent.id, uuid4())
        if earlier not in self._long:
            thread = self.runtime.thread(self._agent.id, uuid4())
            for number in range(earlier):
                script = Script(f"past-{uuid4().hex[:8]}-{number}", tools=0, token_bytes=100, message_bytes=2_000)
                await self._client.get_workflow_handle(await thread.send(script.message)).result()
            self._long[earlier] = thread
        return self._long[earlier]


async def open_client() -> TurnFunction:
    client = await Client.connect(TEMPORAL)
    threads = Threads(client)
    working = asyncio.create_task(threads.runtime.run_worker())

    async def run_turn(call: Call) -> Answer:
        if working.done():
            working.result()
        thread = await threads.thread(call.earlier)

        async def follow() -> None:
            async for event in thread.events():
                piece = event.data.get("delta")
                if isinstance(piece, str):
                    call.tap.text(piece)

        following = asyncio.create_task(follow())
        await asyncio.sleep(0)  # it listens before anything is said
        workflow = await thread.send(call.message)
        await client.get_workflow_handle(workflow).result()
        content = (await thread.messages())[-1].content
        following.cancel()
        text = content if isinstance(content, str) else "".join(getattr(block, "text", "") for block in content)
        return Answer(text, workflow)

    return run_turn
