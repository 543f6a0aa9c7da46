"""Local activities outlive a workflow task that is lost.

A worker too slow to answer within `WORKFLOW_TASK_TIMEOUT` loses the task. Temporal's SDK then cancels the task's local
activities, and it looks exactly as if the turn had been cancelled; with the task's next try it starts them again. So a
tool that was only in bad company would have an unknown outcome, and a hook would be cut and run twice.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from everturn.activities.payloads import activity_name
from everturn.activities.running import RunningWork
from everturn.ids import request_id_of

KEEP: Final = 30.0
"""Seconds for which the result of a local activity waits for the next try of its lost workflow task."""
CLOSE: Final = 5.0
"""Seconds that what nobody waits for any more has to end in when its worker has stopped."""


@dataclass(eq=False)
class Run:
    """One local activity. waiting: executions that want its result."""

    args: Sequence[Any]
    attempt: int
    task: asyncio.Task[Any]
    waiting: int = 0


class LocalRuns:
    """The local activities of this process: an execution of one that runs already joins it.

    Ids do not tell which is which: the next try of a workflow task may number its activities in another order.
    """

    def __init__(self) -> None:
        self._runs: defaultdict[tuple[str, str], list[Run]] = defaultdict(list)

    def joined(self, info: activity.Info, args: Sequence[Any], start: Callable[[], Coroutine[Any, Any, Any]]) -> Run:
        """The run of this activity with these arguments; started if there is none."""
        key = (info.workflow_run_id or "", info.activity_type)
        for run in self._runs[key]:
            if run.attempt == info.attempt and run.args == args:
                if run.task.done():
                    self._forget(key, run)
                return run
        run = Run(args, info.attempt, asyncio.ensure_future(start()))
        self._runs[key].append(run)
        run.task.add_done_callback(lambda _: self._ended(key, run))
        return run

    async def close(self) -> None:
        """Cancels what nobody waits for any more."""
        tasks = [run.task for runs in self._runs.values() for run in runs]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE)

    def _ended(self, key: tuple[str, str], run: Run) -> None:
        if run.waiting:
            self._forget(key, run)
        else:
            asyncio.get_running_loop().call_later(KEEP, self._forget, key, run)

    def _forget(self, key: tuple[str, str], run: Run) -> None:
        runs = self._runs[key]
        if run in runs:
            runs.remove(run)
        if not runs:
            del self._runs[key]


class LocalRunsInterceptor(Interceptor):
    """Cancels a local activity only if its turn is cancelled; one whose workflow task is lost goes on.

    A cancel of the turn has gone through this process before Temporal's own arrives: see `Arrows.interrupt`.
    """

    def __init__(self, runs: LocalRuns, running: RunningWork) -> None:
        self._runs, self._running = runs, running

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """See base class."""
        return _Outliving(next, self._runs, self._running)


class _Outliving(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, runs: LocalRuns, running: RunningWork) -> None:
        super().__init__(inner)
        self._runs, self._running = runs, running

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the name in the base class
        """See base class."""
        info = activity.info()
        inner = super().execute_activity
        if not info.is_local or not info.activity_type.startswith(activity_name("")):
            return await inner(input)
        run = self._runs.joined(info, input.args, lambda: inner(input))
        run.waiting += 1
        try:
            return await asyncio.shield(run.task)
        except asyncio.CancelledError:
            if not self._running.was_interrupted(request_id_of(info.workflow_id or "")):
                raise
            run.task.cancel()
            return await run.task
        finally:
            run.waiting -= 1
