"""The OpenAI Agents SDK with Temporal's plugin: a streamed run in the workflow, the tool an activity."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from agents import Agent, Runner
from agents.models.openai_provider import OpenAIProvider
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.contrib.workflow_streams import WorkflowStream, WorkflowStreamClient
from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
from temporalio.openai_agents.workflow import activity_as_tool
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from benchmarks.peers.litellm_step import opening
    from benchmarks.peers.openai_step import model_client
    from benchmarks.peers.protocol import NAME, SYSTEM, TEMPORAL, Answer, Call, TurnFunction

TOPIC = "events"
POLL = timedelta(milliseconds=100)
Items = list[dict[str, Any]]


@activity.defn
async def lookup(turn: str, n: int) -> str:  # noqa: ARG001
    """Looks something up."""
    return f"result {n}"


@workflow.defn
class AgentsTurn:
    @workflow.init
    def __init__(self, items: Items) -> None:  # noqa: ARG002
        self.stream = WorkflowStream()

    @workflow.run
    async def run(self, items: Items) -> str:
        tool = activity_as_tool(lookup, start_to_close_timeout=timedelta(minutes=1))
        agent = Agent(name="Assistant", instructions=SYSTEM, model="fake", tools=[tool])
        running = Runner.run_streamed(agent, items)
        async for _ in running.stream_events():
            pass
        return str(running.final_output)


def plugin() -> OpenAIAgentsPlugin:
    provider = OpenAIProvider(openai_client=model_client(), use_responses=False)
    return OpenAIAgentsPlugin(model_params=ModelActivityParameters(streaming_topic=TOPIC), model_provider=provider)


async def run_worker() -> None:
    client = await Client.connect(TEMPORAL, plugins=[plugin()])
    await Worker(client, task_queue=NAME, workflows=[AgentsTurn], activities=[lookup]).run()


async def open_client() -> TurnFunction:
    client = await Client.connect(TEMPORAL, plugins=[plugin()])

    async def run_turn(call: Call) -> Answer:
        items = opening(call.message, call.earlier)[1:]
        handle = await client.start_workflow(AgentsTurn.run, items, id=call.turn, task_queue=NAME)

        async def follow() -> None:
            topic = WorkflowStreamClient.create(client, call.turn).topic(TOPIC, type=dict)
            async for item in topic.subscribe(from_offset=0, poll_cooldown=POLL):
                if item.data.get("type") == "response.output_text.delta":
                    call.tap.text(item.data["delta"])

        following = asyncio.create_task(follow())
        text = await handle.result()
        await following
        return Answer(text, call.turn)

    return run_turn
