"""Everturn, as shipped: the worker is `everturn worker`, this is an application that submits turns and follows them."""

from __future__ import annotations

import asyncio
import time

from benchmarks.peers.protocol import Answer, Call, Tap, TurnFunction
from benchmarks.peers.script import earlier_exchanges
from everturn import ChatClient, Chunk, Store
from everturn.settings import Settings
from everturn.store.records import Admission, Ending, StepRecord
from everturn.turns import Usage


async def open_client() -> TurnFunction:
    store = await Store.open(str(Settings().store))
    chat = await ChatClient.connect(store=store)
    threads = LongThreads(store)

    async def run_turn(call: Call) -> Answer:
        thread = await threads.with_turns(call.earlier) if call.earlier else f"thread-{call.turn}"
        turn = await chat.submit(thread, call.message, agent="bench")
        accepted = time.time()
        async for chunk in turn.stream():
            show(chunk, call.tap)
        result = await turn.result()
        if result.status != "completed":
            raise RuntimeError(f"the turn ended as {result.status}: {result.error}")
        return Answer(result.text, turn.workflow_id, accepted)

    return run_turn


def show(chunk: Chunk, tap: Tap) -> None:
    """Shows a chunk as a chat window would; a void attempt's text is taken away."""
    if chunk.type == "text-delta":
        tap.text(chunk.data["delta"])
    elif chunk.type == "data-reset":
        tap.reset()


class LongThreads:
    """Threads with a past, written through the store as a worker would have: the past itself is not measured."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._made: set[int] = set()

    async def with_turns(self, count: int) -> str:
        """A thread that had at least `count` turns."""
        thread = f"long-{count}"
        async with self._lock:
            if count not in self._made:
                for number, (question, answer) in enumerate(earlier_exchanges(count)):
                    await self._add(thread, f"{thread}-{number}", question, answer)
                self._made.add(count)
        return thread

    async def _add(self, thread: str, request_id: str, question: str, answer: str) -> None:
        admission = Admission(
            request_id=request_id,
            thread_id=thread,
            agent="bench",
            digest="none",
            policy="queue",
            trigger="submit",
            submitted_at=time.time(),
            asked_at=time.time(),
            run_id="none",
            parts=[{"type": "text", "text": question}],
        )
        step = StepRecord(request_id, 0, 1, "fake", [{"type": "text", "text": answer}], [], "stop", Usage(1, 1), 1)
        await self._store.begin(admission)
        await self._store.open_step(request_id, 0, activity="none", try_=1)
        await self._store.commit_step(step, [])
        await self._store.finish(Ending(request_id, "completed", "end_turn"))
