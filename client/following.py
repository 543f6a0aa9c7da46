"""Following turns to their end, also when nobody is left to end them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from everturn.activities.payloads import TurnOutcome
from everturn.chunks import ABORT, ERROR, JOINED, Chunk
from everturn.client.temporal import TemporalTurns
from everturn.errors import StoreUnavailable, TurnNotFound
from everturn.store.records import Ended
from everturn.store.store import Store
from everturn.turns import TERMINAL, TurnResult

QUIET_SECONDS: Final = 5.0
"""A turn that shows nothing for so long is looked up in Temporal: its workflow may have been terminated."""


class Follower:
    """Reads a turn from the store and keeps an eye on its workflow."""

    def __init__(self, temporal: TemporalTurns, store: Store, *, known: bool = False) -> None:
        """known: Temporal has accepted the turn, so there is no need to ask whether it exists."""
        self._temporal, self._store, self._known = temporal, store, known

    async def chunks(self, request_id: str, after: int) -> AsyncGenerator[Chunk, None]:
        """The chunks numbered above `after`, up to and with the end. Raises TurnNotFound.

        Where the message was answered by another turn, that turn's chunks follow, numbered on.
        """
        await self._check_exists(request_id)
        answered_by, last = await self._left_behind(request_id, after) if after else (None, 0)
        if answered_by is None:
            async with aclosing(self._own_chunks(request_id, after)) as chunks:
                async for chunk in chunks:
                    answered_by, last = _joined(chunk), chunk.seq
                    yield chunk if answered_by is None else replace(chunk, type=JOINED, data={"requestId": answered_by})
        if answered_by is not None:
            async with aclosing(self._own_chunks(answered_by, max(after - last, 0))) as chunks:
                async for chunk in chunks:
                    yield replace(chunk, seq=chunk.seq + last)

    async def result(self, request_id: str) -> TurnResult:
        """Waits for the end, of the turn that answers this one's message. Raises TurnNotFound."""
        result = await self._own_result(request_id)
        head = await self._store.head(request_id) if result.status == "superseded" else None
        return result if head is None or head.answered_by is None else await self._own_result(head.answered_by)

    async def _own_chunks(self, request_id: str, after: int) -> AsyncGenerator[Chunk, None]:
        async with aclosing(self._store.tail_batches(request_id, after)) as source:
            while chunks := await self._next(source, request_id):
                for chunk in chunks:
                    yield chunk
                    if chunk.is_end:
                        return

    async def _own_result(self, request_id: str) -> TurnResult:
        await self._check_exists(request_id)
        waiting = asyncio.ensure_future(self._store.wait_end(request_id))
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=QUIET_SECONDS)
                if done:
                    return _result(waiting.result())
                outcome = await self.settle_if_lost(request_id)
                if outcome is not None:
                    return outcome.as_result()
        finally:
            waiting.cancel()

    async def settle_if_lost(self, request_id: str) -> TurnOutcome | None:
        """Ends a turn whose workflow is gone (terminated in the Web UI, say), so that nobody waits for ever.

        A turn that never reached the store has only its workflow's outcome, which is returned then.
        """
        found = await self._temporal.find(request_id)
        if found is None or found.closed is None:
            return None
        head = await self._store.head(request_id)
        if head is None:
            return await self._temporal.outcome(request_id)
        if head.status not in TERMINAL:
            await self._temporal.settle(self._store, request_id, found)
        return None

    async def _next(self, source: AsyncIterator[list[Chunk]], request_id: str) -> list[Chunk]:
        """The next chunks, none after the end."""
        pending = asyncio.ensure_future(_advance(source))
        try:
            while True:
                done, _ = await asyncio.wait({pending}, timeout=QUIET_SECONDS)
                if done:
                    return pending.result()
                outcome = await self.settle_if_lost(request_id)
                if outcome is not None:
                    return [self._end_of_unrecorded(outcome)]
        finally:
            if not pending.done():
                pending.cancel()
                await asyncio.wait({pending})

    def _end_of_unrecorded(self, outcome: TurnOutcome) -> Chunk:
        """The only chunk of a turn that the store never saw. Raises StoreUnavailable if another store must have it."""
        if outcome.error is None:
            reason = f"it has no record of turn {outcome.request_id!r}, which is {outcome.status}"
            raise StoreUnavailable(self._store.url, reason, "connect with the store of the workers")
        return Chunk(1, ERROR, {"type": outcome.error.type, "errorText": outcome.error.message})

    async def _check_exists(self, request_id: str) -> None:
        if self._known:
            return
        if await self._store.head(request_id) is None and await self._temporal.find(request_id) is None:
            raise TurnNotFound(request_id)

    async def _left_behind(self, request_id: str, after: int) -> tuple[str | None, int]:
        """The turn that answers this one's message, if `after` is behind this one's own chunks; the number of those."""
        head = await self._store.head(request_id)
        if head is None or head.answered_by is None or after < head.last_seq:
            return None, 0
        return head.answered_by, head.last_seq


def _joined(chunk: Chunk) -> str | None:
    """The turn that answers the message of a turn which ends with this chunk."""
    by: str | None = chunk.data.get("supersededBy") if chunk.type == ABORT and chunk.data.get("joined") else None
    return by


async def _advance(source: AsyncIterator[list[Chunk]]) -> list[Chunk]:
    return await anext(source, [])


def _result(ended: Ended) -> TurnResult:
    message = ended.message
    return TurnResult(
        request_id=ended.request_id,
        thread_id=ended.thread_id,
        status=ended.status,
        stop_reason=ended.stop_reason,
        text=message.text if message else "",
        message=message.parts if message else None,
        output=ended.output,
        message_id=message.id if message else None,
        usage=ended.usage,
        steps=ended.steps,
        error=ended.error,
    )
