"""on_chunk: the hooks watch the stream from the side and never slow it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from everturn.activities.dispatch import Dispatch
from everturn.activities.facts import hook_ref
from everturn.activities.services import Services
from everturn.chunks import Chunk, Event
from everturn.hooks.contexts import ChunkContext
from everturn.hooks.log import HookLog
from everturn.hooks.points import ON_CHUNK
from everturn.hooks.registry import BoundHook
from everturn.hooks.runner import HookRun, log_for, run_hook
from everturn.store.records import TurnFacts

MAX_WAITING: Final = 1000
"""Chunks that may wait for a slow hook; further ones are not shown to it, and the trace says how many."""
PATIENCE: Final = 2.0
"""Seconds that a finished step waits for its hooks to catch up."""


class ChunkObserver:
    """Feeds each hook of the point through a queue of its own; leaves one trace a hook and step."""

    def __init__(
        self, services: Services, turn: TurnFacts, step: int, attempt: int, chain: Sequence[BoundHook]
    ) -> None:
        self._services, self._turn, self._step, self._attempt = services, turn, step, attempt
        self._dispatch = Dispatch[ChunkContext](
            services, turn.request_id, ON_CHUNK, chain, step=step, state=dict(turn.state)
        )
        self._feeds = [_Feed(hook, self._context(hook)) for hook in chain]
        self._tasks = [asyncio.ensure_future(feed.run(services)) for feed in self._feeds]
        self._seq = 0

    def seen(self, event: Event) -> None:
        self._seq += 1
        chunk = Chunk(self._seq, event.type, event.data, self._step, self._attempt)
        for feed in self._feeds:
            feed.offer(chunk)

    async def close(self) -> None:
        """Waits a moment for slow hooks, then records what each did."""
        for feed in self._feeds:
            feed.end()
        _, late = await asyncio.wait(self._tasks, timeout=PATIENCE)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        for feed in self._feeds:
            self._dispatch.trace(self._dispatch.adopted(feed.summary(), feed.context))
        await self._dispatch.record()

    def _context(self, hook: BoundHook) -> ChunkContext:
        ref = hook_ref(self._turn, hook, f"{self._step}:{self._attempt}")
        return ChunkContext(ref, log_for(hook), step=self._step)


class _Feed:
    def __init__(self, hook: BoundHook, context: ChunkContext) -> None:
        self._hook, self.context = hook, context
        self._queue: asyncio.Queue[Chunk | None] = asyncio.Queue()
        self._missed = 0
        self._busy = False
        self._failure: HookRun | None = None
        self._started = time.monotonic()

    def offer(self, chunk: Chunk) -> None:
        if self._queue.qsize() >= MAX_WAITING:
            self._missed += 1
        else:
            self._queue.put_nowait(chunk)

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def run(self, services: Services) -> None:
        log = HookLog(f"hook:{ON_CHUNK}:{self._hook.name}")
        while (chunk := await self._queue.get()) is not None:
            self._busy = True
            run = await run_hook(self._hook, log, chunk, self.context, answers=(), executor=services.threads)
            if not run.ok and self._failure is None:
                self._failure = run
            self._busy = False

    def summary(self) -> HookRun:
        waiting = max(0, self._queue.qsize() - 1) if self._queue.qsize() else 0
        missed = self._missed + waiting
        note = f"{missed} chunks were not shown to this hook: it is too slow" if missed else None
        elapsed = round((time.monotonic() - self._started) * 1000)
        if self._failure is None and self._busy:
            cut_off = f"it was cut off in a chunk {PATIENCE:g} s after the step"
            message = "; ".join(part for part in (note, cut_off) if part)
            return HookRun(self._hook, "timeout", None, message, elapsed, self._logs())
        if self._failure is not None:
            message = "; ".join(part for part in (self._failure.message, note) if part)
            return HookRun(self._hook, self._failure.outcome, None, message, elapsed, self._logs())
        return HookRun(self._hook, "ok", None, note, elapsed, self._logs())

    def _logs(self) -> list[dict[str, object]]:
        return self.context._log.lines  # pyright: ignore[reportPrivateUsage]
