"""What each millisecond of one turn was spent on.

python -m benchmarks.waterfall              starts a system of its own and plays a turn with two tool calls
python -m benchmarks.waterfall REQUEST_ID   a turn of the system that EVERTURN_TARGET and EVERTURN_STORE name
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

from temporalio.client import Client

from benchmarks.contenders import OURS
from benchmarks.field import open_field
from benchmarks.peers.script import Script
from benchmarks.trace.drawing import drawn
from benchmarks.trace.segments import segments
from everturn import ChatClient
from everturn.connection import connect_temporal
from everturn.ids import workflow_id
from everturn.settings import settings_from
from everturn.worker.exit import guarded_exit

_WARM_TURNS = 5
_LIMIT = 60.0


async def lines(temporal: Client, chat: ChatClient, request_id: str) -> Iterator[str]:
    """The waterfall of a turn whose workflow has ended."""
    handle = temporal.get_workflow_handle(workflow_id(request_id))
    await asyncio.wait_for(handle.result(), _LIMIT)
    history = await handle.fetch_history()
    return drawn(segments(history.events), await chat.inspect(request_id))


async def of_running_system(request_id: str) -> None:
    temporal = await connect_temporal(settings_from())
    async with await ChatClient.connect(temporal) as chat:
        print("\n".join(await lines(temporal, chat, request_id)))


async def of_own_system() -> None:
    async with open_field() as field:
        entrant = field.entrants[OURS]
        store = entrant.variables["EVERTURN_STORE"]
        async with await ChatClient.connect(field.temporal, task_queue=OURS, store=store) as chat:
            for number in range(_WARM_TURNS):
                await _followed(chat, f"warm-{number}")
            request_id, accepted, over = await _followed(chat, "shown")
            print(f"the client: submit took {accepted:.1f} ms, the stream's end came after {over:.1f} ms\n")
            print("\n".join(await lines(field.temporal, chat, request_id)))


async def _followed(chat: ChatClient, thread: str) -> tuple[str, float, float]:
    """A turn's id, and ms until it was accepted and until its stream had ended."""
    began = time.perf_counter()
    turn = await chat.submit(thread, Script(thread, tools=2, tokens=20).message, agent="bench")
    accepted = time.perf_counter()
    async for _ in turn.stream():
        pass
    return turn.request_id, (accepted - began) * 1000, (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    asyncio.run(of_running_system(sys.argv[1]) if len(sys.argv) > 1 else of_own_system())
    guarded_exit(0)
