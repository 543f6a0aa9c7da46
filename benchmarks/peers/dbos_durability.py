"""pydantic-ai with its durability on DBOS and SQLite; turns run in the application's own process.

A killed application is started again and recovers its turns. The viewer of the stream must then be another process:
BENCH_PORT names the side channel that gets the tokens.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable
from typing import Any

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage

from benchmarks.peers.protocol import FOLDER, NAME, SYSTEM, Answer, Call, Tap, TurnFunction
from benchmarks.peers.pydantic_ai_parts import make_model, past, text_of
from benchmarks.peers.side_channel import send

PORT = int(os.environ.get("BENCH_PORT", "0"))
taps: dict[str, Tap] = {}

DBOS(
    config={
        "name": "bench",
        "system_database_url": f"sqlite:///{FOLDER}/{NAME}.sqlite",
        "run_admin_server": False,
        "log_level": "ERROR",
        "application_version": "1",
    }
)


async def show(_context: Any, events: AsyncIterable[Any]) -> None:
    async for event in events:
        if not (piece := text_of(event)):
            continue
        turn = str(DBOS.workflow_id)
        if PORT:
            await send(PORT, turn, piece)
        elif turn in taps:
            taps[turn].text(piece)


durability = DBOSDurability(event_stream_handler=show)
agent = Agent(make_model(), instructions=SYSTEM, name="bench", capabilities=[durability])


@agent.tool_plain
@DBOS.step()
async def lookup(turn: str, n: int) -> str:  # noqa: ARG001
    """Looks something up."""
    return f"result {n}"


@DBOS.workflow()
async def durable_turn(prompt: str, earlier: list[ModelMessage]) -> str:
    return (await agent.run(prompt, message_history=earlier or None)).output


async def open_client() -> TurnFunction:
    DBOS.launch()

    async def run_turn(call: Call) -> Answer:
        if recovered := os.environ.get("BENCH_RECOVERED"):
            return Answer(await (await DBOS.retrieve_workflow_async(recovered)).get_result())
        taps[call.turn] = call.tap
        with SetWorkflowID(call.turn):
            return Answer(await durable_turn(call.message, past(call.earlier)))

    return run_turn
