"""One attempt at one model call: from the request to the finished answer, streaming on the way."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from everturn.activities.models.accumulator import Accumulator, Completion
from everturn.activities.models.deadlines import Deadlines, with_deadlines
from everturn.activities.models.types import ModelLane, ModelRequest
from everturn.activities.settings import StepSettings
from everturn.activities.transforming import TransformChain
from everturn.chunks import START_STEP, Event
from everturn.store.writer import StreamWriter


class Fenced(Exception):
    """A later attempt has taken the step over; this one must not write any more."""


class Observer(Protocol):
    """Sees each chunk; must return at once."""

    def seen(self, event: Event) -> None: ...


@dataclass
class StepRun:
    """The parts of an attempt that outlive its task: what has arrived is here even when the task was cancelled."""

    step: int
    lane: ModelLane
    request: ModelRequest
    settings: StepSettings
    writer: StreamWriter
    accumulator: Accumulator
    transforms: TransformChain
    observer: Observer | None = None
    started: float = 0.0

    async def stream(self) -> Completion:
        """Raises ModelFailure, or Fenced."""
        self.started = time.monotonic()
        self.emit(Event(START_STEP, {"step": self.step}))
        limits = Deadlines(self.settings.first_token_timeout, self.settings.idle_timeout, self.settings.total_timeout)
        async with aclosing(with_deadlines(self.lane.stream(self.request), limits)) as deltas:
            async for delta in deltas:
                for event in self.accumulator.feed(delta):
                    for shown in self.transforms.apply(event):
                        self.emit(shown)
                if self.writer.fenced:
                    raise Fenced
        return self.accumulator.close()

    def emit(self, event: Event) -> None:
        self.writer.put(event)
        if self.observer is not None:
            self.observer.seen(event)

    def shown(self, completion: Completion) -> Completion:
        """A completion as it is to be shown and stored: its last events and its parts as the transforms let them."""
        events = tuple(shown for event in completion.events for shown in self.transforms.apply(event))
        parts = self.transforms.parts(completion.parts, reasoning_shown=self.settings.send_reasoning)
        return replace(completion, events=events, parts=parts)

    @property
    def duration_ms(self) -> int:
        return round((time.monotonic() - self.started) * 1000) if self.started else 0
