"""Nothing durable: a loop of litellm calls in the client's own process. The least that a turn can take."""

from __future__ import annotations

import json

from benchmarks.peers.litellm_step import opening, streamed_step
from benchmarks.peers.protocol import Answer, Call, TurnFunction


async def open_client() -> TurnFunction:
    import litellm  # noqa: F401 - before the first measured turn

    return run_turn


async def run_turn(call: Call) -> Answer:
    messages = opening(call.message, call.earlier)

    async def show(piece: str) -> None:
        call.tap.text(piece)

    while True:
        said = await streamed_step(messages, show)
        messages.append(said)
        if "tool_calls" not in said:
            return Answer(said["content"])
        for asked in said["tool_calls"]:
            number = json.loads(asked["function"]["arguments"])["n"]
            messages.append({"role": "tool", "tool_call_id": asked["id"], "content": f"result {number}"})
