"""pydantic-ai with its durability on Temporal, streamed by a topic."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.durable_exec.temporal import (
    AgentEventStream,
    PydanticAIPlugin,
    PydanticAIWorkflow,
    TemporalDurability,
    stream_agent_events,
)
from pydantic_ai.messages import ModelMessage
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from benchmarks.peers.protocol import NAME, SYSTEM, TEMPORAL, Answer, Call, TurnFunction
    from benchmarks.peers.pydantic_ai_parts import make_model, past, text_of

TOPIC = "agent-events"
durability = TemporalDurability(event_stream_topic=TOPIC)
agent = Agent(make_model(), instructions=SYSTEM, name="bench", capabilities=[durability])


@agent.tool_plain
async def lookup(turn: str, n: int) -> str:  # noqa: ARG001
    """Looks something up."""
    return f"result {n}"


@workflow.defn
class AgentTurn(PydanticAIWorkflow):
    __pydantic_ai_agents__ = [agent]  # noqa: RUF012 - the name and form that the library asks for

    @workflow.init
    def __init__(self, prompt: str, earlier: list[ModelMessage]) -> None:  # noqa: ARG002
        self.events = AgentEventStream()

    @workflow.run
    async def run(self, prompt: str, earlier: list[ModelMessage]) -> str:
        async with self.events:
            return (await agent.run(prompt, message_history=earlier or None)).output


async def run_worker() -> None:
    client = await Client.connect(TEMPORAL, plugins=[PydanticAIPlugin()])
    await Worker(client, task_queue=NAME, workflows=[AgentTurn]).run()


async def open_client() -> TurnFunction:
    client = await Client.connect(TEMPORAL, plugins=[PydanticAIPlugin()])

    async def run_turn(call: Call) -> Answer:
        arguments = [call.message, past(call.earlier)]
        handle = await client.start_workflow(AgentTurn.run, args=arguments, id=call.turn, task_queue=NAME)
        async for event in stream_agent_events(client, handle, TOPIC, output_type=str):
            call.tap.text(text_of(event))
        return Answer(await handle.result(), call.turn)

    return run_turn
