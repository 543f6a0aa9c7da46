"""The load of the soak: users that talk without a pause, each on a thread of its own."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from everturn import ChatClient, Turn

PATIENCE = 60.0
"""Seconds after which a turn counts as stuck."""
TURNS_OF_A_THREAD = 8
SHARES = {"plain": 50, "tool": 25, "cancel": 15, "approval": 10}


@dataclass
class Tally:
    """What the users have seen. wrong: one sentence for each turn that did not end as it should have."""

    done: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    @property
    def turns(self) -> int:
        return self.done.total()


class User:
    """One user. Every answer is read as it streams."""

    def __init__(self, chat: ChatClient, seed: int, tally: Tally) -> None:
        self._chat, self._tally = chat, tally
        self._dice = random.Random(seed)
        self._thread, self._turns = "", 0
        self._kinds: dict[str, Callable[[], Awaitable[str | None]]] = {
            "plain": self._plain,
            "tool": self._tool,
            "cancel": self._cancel,
            "approval": self._approval,
        }

    async def talk(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; a turn that has begun is ended."""
        while not stop.is_set():
            if self._turns % TURNS_OF_A_THREAD == 0:
                self._thread = f"thread-{uuid.uuid4().hex[:12]}"
            self._turns += 1
            (kind,) = self._dice.choices(list(SHARES), list(SHARES.values()))
            try:
                async with asyncio.timeout(PATIENCE):
                    wrong = await self._kinds[kind]()
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            self._tally.done[kind] += 1
            if wrong is not None:
                self._tally.wrong.append(f"{kind} turn of {self._thread}: {wrong}")

    async def _plain(self) -> str | None:
        tokens = self._dice.randint(10, 80)
        turn = await self._submit(f"[[text tokens={tokens} delay_ms=5]]")
        return await self._ended(turn, "completed", tokens)

    async def _tool(self) -> str | None:
        calls = self._dice.randint(1, 3)
        turn = await self._submit(f"[[tools calls={calls} sequential=1 tool=lookup]]")
        return await self._ended(turn, "completed", 3)

    async def _cancel(self) -> str | None:
        turn = await self._submit("[[text tokens=1000 delay_ms=20]]")
        async with aclosing(turn.stream()) as chunks:  # type: ignore[type-var]  # a generator
            async for chunk in chunks:
                if chunk.type == "text-delta":
                    break
        await self._chat.cancel_chat(turn.request_id, "enough")
        return await self._ended(turn, "aborted", None)

    async def _approval(self) -> str | None:
        turn = await self._submit("[[tools calls=1 tool=refund]]")
        async with aclosing(turn.stream()) as chunks:  # type: ignore[type-var]  # a generator
            async for chunk in chunks:
                if chunk.type == "tool-approval-request":
                    answer = self._dice.choice((self._chat.approve, self._chat.deny))
                    outcome = await answer(turn.request_id, chunk.data["toolCallId"])
                    if outcome != "accepted":
                        return f"the answer to its call was {outcome}"
        return await self._ended(turn, "completed", 3)

    async def _submit(self, message: str) -> Turn:
        return await self._chat.submit(self._thread, message, agent="soak")

    async def _ended(self, turn: Turn, status: str, words: int | None) -> str | None:
        """Reads the stream to its end; what is wrong with the turn."""
        async for _ in turn.stream():
            pass
        result = await turn.result()
        if result.status != status:
            return f"status {result.status} instead of {status}: {result.error}"
        if words is not None and len(result.text.split()) != words:
            return f"{len(result.text.split())} words instead of {words}"
        return None
