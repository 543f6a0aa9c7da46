"""The floor: the least that somebody writes by hand who wants turns as Temporal workflows and no framework.

An activity per model call and per tool call, the conversation in the workflow, SDK defaults (sandbox included), tokens
over a loopback side channel; nothing is stored outside of Temporal.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from benchmarks.peers.litellm_step import opening, streamed_step
    from benchmarks.peers.protocol import NAME, TEMPORAL, Answer, Call, TurnFunction
    from benchmarks.peers.side_channel import Receiver, send

BEAT = 1.0


@activity.defn
async def model_step(turn: str, port: int, messages: list[dict[str, Any]]) -> dict[str, Any]:
    beaten = 0.0

    async def show(piece: str) -> None:
        nonlocal beaten
        if time.monotonic() - beaten > BEAT:
            beaten = time.monotonic()
            activity.heartbeat()
        await send(port, turn, piece)

    return await streamed_step(messages, show)


@activity.defn
async def lookup(turn: str, n: int) -> str:  # noqa: ARG001
    return f"result {n}"


@workflow.defn
class FloorTurn:
    @workflow.run
    async def run(self, turn: str, port: int, messages: list[dict[str, Any]]) -> str:
        while True:
            said = await workflow.execute_activity(
                model_step,
                args=[turn, port, messages],
                start_to_close_timeout=timedelta(minutes=2),
                heartbeat_timeout=timedelta(seconds=5),
            )
            messages.append(said)
            if "tool_calls" not in said:
                return str(said["content"])
            for asked in said["tool_calls"]:
                arguments = json.loads(asked["function"]["arguments"])
                result = await workflow.execute_activity(
                    lookup, args=[arguments["turn"], arguments["n"]], start_to_close_timeout=timedelta(minutes=1)
                )
                messages.append({"role": "tool", "tool_call_id": asked["id"], "content": result})


async def run_worker() -> None:
    await asyncio.to_thread(__import__, "litellm")
    client = await Client.connect(TEMPORAL)
    await Worker(client, task_queue=NAME, workflows=[FloorTurn], activities=[model_step, lookup]).run()


async def open_client() -> TurnFunction:
    client = await Client.connect(TEMPORAL)
    receiver = Receiver()
    await receiver.start()

    async def run_turn(call: Call) -> Answer:
        receiver.taps[call.turn] = call.tap
        arguments = [call.turn, receiver.port, opening(call.message, call.earlier)]
        text = await client.execute_workflow(FloorTurn.run, args=arguments, id=call.turn, task_queue=NAME)
        return Answer(text, call.turn)

    return run_turn
