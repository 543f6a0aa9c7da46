"""The net below all limits: what an activity of ours would hand over is measured, and too much ends it at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Worker

from everturn.activities.sizes import MAX_FAILURE_BYTES, MAX_RESULT_BYTES, SizeInterceptor, shortened

HUGE = 4 * 1024 * 1024
OURS, THEIRS = "everturn.probe", "author.probe"


async def probe(kind: str, size: int) -> Any:
    """Returns or raises something of this size."""
    if kind == "result":
        return "x" * (size - 2)
    if kind == "message":
        raise ValueError("x" * size)
    try:
        raise KeyError("x" * size)
    except KeyError as error:
        facts = {"kept": True}
        raise ApplicationError("short", facts, type="Kept", next_retry_delay=timedelta(milliseconds=1)) from error


@workflow.defn(sandboxed=False)
class Probing:
    """One activity, as often as it is let."""

    @workflow.run
    async def run(self, name: str, kind: str, size: int, local: bool) -> int:
        start = workflow.execute_local_activity if local else workflow.execute_activity
        retry = RetryPolicy(maximum_attempts=2, initial_interval=timedelta(milliseconds=1))
        options: Any = {"start_to_close_timeout": timedelta(seconds=10), "retry_policy": retry}
        return len(await start(name, args=[kind, size], result_type=str, **options))


@pytest.fixture
async def worker(client: Client, task_queue: str) -> Any:
    activities = [activity.defn(name=name)(_copy()) for name in (OURS, THEIRS)]
    async with Worker(
        client,
        task_queue=task_queue,
        workflows=[Probing],
        activities=activities,
        interceptors=[SizeInterceptor()],
    ) as running:
        yield running


def _copy() -> Any:
    async def run(kind: str, size: int) -> Any:
        return await probe(kind, size)

    return run


async def _run(client: Client, task_queue: str, kind: str, size: int, *, name: str = OURS, local: bool = False) -> Any:
    async with asyncio.timeout(20):
        identity = f"{task_queue}-{name}-{kind}-{size}-{local}"
        return await client.execute_workflow(
            Probing.run, args=[name, kind, size, local], id=identity, task_queue=task_queue
        )


def _cause(caught: pytest.ExceptionInfo[WorkflowFailureError]) -> ApplicationError:
    cause = caught.value.cause
    found = cause.cause if isinstance(cause, ActivityError) else cause
    assert isinstance(found, ApplicationError)
    return found


@pytest.mark.parametrize("local", [False, True])
async def test_a_result_over_the_limit_fails_at_once_and_says_so(
    worker: Any, client: Client, task_queue: str, local: bool
) -> None:
    assert await _run(client, task_queue, "result", MAX_RESULT_BYTES, local=local) == MAX_RESULT_BYTES - 2
    for size in (MAX_RESULT_BYTES + 1, HUGE):
        with pytest.raises(WorkflowFailureError) as caught:
            await _run(client, task_queue, "result", size, local=local)
        cause = _cause(caught)
        assert (cause.type, cause.non_retryable) == ("ResultTooLarge", True)
        assert f"the result of everturn.probe has {size:,} bytes as JSON; the limit is 524,288" in cause.message


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("kind", ["message", "cause"])
async def test_a_failure_over_the_limit_keeps_what_it_says_of_itself_and_no_causes(
    worker: Any, client: Client, task_queue: str, kind: str, local: bool
) -> None:
    for size in (MAX_FAILURE_BYTES + 1, HUGE):
        with pytest.raises(WorkflowFailureError) as caught:
            await _run(client, task_queue, kind, size, local=local)
        cause = _cause(caught)
        assert cause.cause is None
        assert (cause.type, len(cause.message) <= 8192) == ("ValueError" if kind == "message" else "Kept", True)
        if kind == "cause":
            assert (cause.message, cause.details[0]) == ("short", {"kept": True})
    with pytest.raises(WorkflowFailureError) as caught:
        await _run(client, task_queue, "cause", MAX_FAILURE_BYTES - 200, local=local)
    assert _cause(caught).cause is not None


async def test_what_an_author_adds_to_the_worker_is_the_authors(worker: Any, client: Client, task_queue: str) -> None:
    size = MAX_RESULT_BYTES + 1
    assert await _run(client, task_queue, "result", size, name=THEIRS) == size - 2


def test_a_shortened_error_keeps_its_facts() -> None:
    error = ApplicationError("m" * 10_000, 1, type="t" * 300, non_retryable=True, next_retry_delay=timedelta(seconds=3))
    short = shortened(error)
    assert (len(short.message.encode()), len((short.type or "").encode()), short.details) == (8192, 200, (1,))
    assert (short.non_retryable, short.next_retry_delay) == (True, timedelta(seconds=3))
