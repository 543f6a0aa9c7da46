"""LangGraph with Temporal's plugin: a model node and a tool node as activities; tokens by workflow stream."""

from __future__ import annotations

import json
import operator
from datetime import timedelta
from typing import Annotated, Any, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from temporalio import workflow
from temporalio.client import Client
from temporalio.contrib.workflow_streams import WorkflowStream, WorkflowStreamClient
from temporalio.langgraph import LangGraphPlugin
from temporalio.langgraph import graph as graph_of
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from benchmarks.peers.litellm_step import opening
    from benchmarks.peers.openai_step import streamed_step
    from benchmarks.peers.protocol import NAME, TEMPORAL, Answer, Call, TurnFunction

TOPIC = "tokens"
POLL = timedelta(milliseconds=100)


class State(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]


async def model_node(state: State) -> dict[str, Any]:
    write = get_stream_writer()
    said = await streamed_step(state["messages"], lambda piece: write({"token": piece}))
    if "tool_calls" not in said:
        write({"over": True})
    return {"messages": [said]}


async def tool_node(state: State) -> dict[str, Any]:
    results = []
    for asked in state["messages"][-1]["tool_calls"]:
        number = json.loads(asked["function"]["arguments"])["n"]
        results.append({"role": "tool", "tool_call_id": asked["id"], "content": f"result {number}"})
    return {"messages": results}


async def next_node(state: State) -> str:
    return "tools" if state["messages"][-1].get("tool_calls") else END


def make_graph() -> StateGraph:
    activity = {"execute_in": "activity", "start_to_close_timeout": timedelta(minutes=2)}
    graph = StateGraph(State)
    graph.add_node("model", model_node, metadata=activity)
    graph.add_node("tools", tool_node, metadata=activity)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", next_node)
    graph.add_edge("tools", "model")
    return graph


@workflow.defn
class GraphTurn:
    @workflow.init
    def __init__(self, messages: list[dict[str, Any]]) -> None:  # noqa: ARG002
        self.stream = WorkflowStream()
        self.read = False

    @workflow.signal
    def all_read(self) -> None:
        self.read = True

    @workflow.run
    async def run(self, messages: list[dict[str, Any]]) -> str:
        state = await graph_of("turn").compile().ainvoke({"messages": messages})
        await workflow.wait_condition(lambda: self.read)
        return str(state["messages"][-1]["content"])


async def run_worker() -> None:
    client = await Client.connect(TEMPORAL)
    plugin = LangGraphPlugin(graphs={"turn": make_graph()}, streaming_topic=TOPIC)
    await Worker(client, task_queue=NAME, workflows=[GraphTurn], plugins=[plugin]).run()


async def open_client() -> TurnFunction:
    client = await Client.connect(TEMPORAL)

    async def run_turn(call: Call) -> Answer:
        messages = opening(call.message, call.earlier)
        handle = await client.start_workflow(GraphTurn.run, messages, id=call.turn, task_queue=NAME)
        topic = WorkflowStreamClient.create(client, call.turn).topic(TOPIC, type=dict)
        async for item in topic.subscribe(from_offset=0, poll_cooldown=POLL):
            if item.data.get("over"):
                break
            call.tap.text(item.data["token"])
        await handle.signal(GraphTurn.all_read)
        return Answer(await handle.result(), call.turn)

    return run_turn
