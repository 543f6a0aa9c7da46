"""What runs in this process right now, and how it is stopped.

Three things can stop a model step or a tool: the turn is cancelled (by way of this process or by Temporal), the worker
shuts down, or Temporal has given the attempt up.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from everturn.hooks.cancel import CancelFlag

T = TypeVar("T")
Why = Literal["cancel", "shutdown", "lost"]


REMEMBERED: Final = 10_000
"""Turns whose interruption is remembered; a turn that was cancelled never runs another step."""


class Interrupted(Exception):
    """The work was stopped. cancel: the turn is cancelled. shutdown: this worker stops. lost: another attempt runs."""

    def __init__(self, why: Why) -> None:
        self.why: Why = why
        super().__init__(why)


def stopped_here() -> ApplicationError:
    """For an attempt that this worker gives up: Temporal hands it to another one at once."""
    return ApplicationError("the worker stopped", type="Shutdown", next_retry_delay=timedelta(milliseconds=100))


class RunningWork:
    """The steps and tools that run in this process, by turn."""

    def __init__(self) -> None:
        self._flags: dict[str, list[CancelFlag]] = {}
        self._interrupted: OrderedDict[str, None] = OrderedDict()

    @property
    def turns(self) -> int:
        """How many turns have a step or a tool running here."""
        return len(self._flags)

    @contextmanager
    def enter(self, request_id: str) -> Generator[CancelFlag]:
        """The flag that `interrupt` sets while the block runs, or has set for this turn before it."""
        flag = CancelFlag()
        if self.was_interrupted(request_id):
            flag.set()
        flags = self._flags.setdefault(request_id, [])
        flags.append(flag)
        try:
            yield flag
        finally:
            flags.remove(flag)
            if not flags:
                self._flags.pop(request_id, None)

    def was_interrupted(self, request_id: str) -> bool:
        """Whether the turn is known to be cancelled: it needs no other step."""
        return request_id in self._interrupted

    def interrupt(self, request_id: str) -> bool:
        """Sets the flags of everything that runs for this turn, or is about to; False if nothing runs yet.

        A cancel may overtake the step that it is meant for, on the way from Temporal to this process.
        """
        self._interrupted[request_id] = None
        if len(self._interrupted) > REMEMBERED:
            self._interrupted.popitem(last=False)
        flags = self._flags.get(request_id, [])
        for flag in flags:
            flag.set()
        return bool(flags)


async def within_shutdown(work: Coroutine[Any, Any, T], grace: float) -> T:
    """Runs `work` in a local activity, for which a stopping worker would wait however long it takes.

    Raises ApplicationError, for another worker to begin anew, if the work goes on `grace` seconds after this worker has
    begun to stop.
    """
    task = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(activity.wait_for_worker_shutdown())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=grace)
        if not task.done():
            raise stopped_here()
        return task.result()
    finally:
        stopping.cancel()
        task.cancel()


async def until_interrupted(
    work: Coroutine[Any, Any, T], flag: CancelFlag, *, stop_on_shutdown: bool, grace: float = 0.0
) -> T:
    """Runs `work` in a task. Raises Interrupted after the task has been stopped.

    stop_on_shutdown: leave as soon as the worker begins to shut down, not when its patience ends. grace: seconds that
    the work gets to end by itself once the turn is cancelled; what it then returns counts.
    """
    task = asyncio.ensure_future(work)
    why = await _watched(task, flag, stop_on_shutdown=stop_on_shutdown)
    if why is None:
        return await task
    if why == "cancel":
        flag.set()
        if grace > 0:
            await asyncio.wait({task}, timeout=grace)
    return await _stopped(task, why)


async def _watched(task: asyncio.Future[Any], flag: CancelFlag, *, stop_on_shutdown: bool) -> Why | None:
    """Waits until the task is done (None) or has to be stopped (why)."""
    cancelled = asyncio.ensure_future(flag.wait())
    others: set[asyncio.Future[Any]] = {cancelled}
    if stop_on_shutdown:
        others.add(asyncio.ensure_future(activity.wait_for_worker_shutdown()))
    try:
        await asyncio.wait(others | {task}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None:
            current.uncancel()
        return _temporal_reason(flag)
    finally:
        for future in others:
            future.cancel()
    if task.done():
        return None
    return "cancel" if flag.is_set() else "shutdown"


async def _stopped(task: asyncio.Future[T], why: Why) -> T:
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if task.cancelled():
        raise Interrupted(why)
    error = task.exception()
    if error is not None:
        raise Interrupted(why) from error
    if why == "cancel":
        return task.result()
    raise Interrupted(why)


def _temporal_reason(flag: CancelFlag) -> Why:
    if activity.info().is_local:  # Temporal's details do not tell a lost workflow task from a cancelled turn
        return "cancel" if flag.is_set() else "lost"
    details = activity.cancellation_details()
    if details is None or details.worker_shutdown:
        return "shutdown"
    return "cancel" if details.cancel_requested else "lost"
