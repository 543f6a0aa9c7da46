"""Activities of the application on a worker that runs turns, too: our interceptors leave them as they are."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

from everturn.activities.takeover import TakeoverInterceptor


@activity.defn
def fails_once() -> int:
    """Synchronous: the SDK gives such activities no client."""
    attempt = activity.info().attempt
    if attempt == 1:
        raise RuntimeError("not yet")
    return attempt


@workflow.defn(sandboxed=False)
class Retrying:
    @workflow.run
    async def run(self) -> int:
        return await workflow.execute_activity(
            fails_once,
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=3),
        )


async def test_a_synchronous_activity_of_the_application_is_retried_as_ever(client: Client) -> None:
    queue = f"foreign-{uuid.uuid4().hex}"
    with ThreadPoolExecutor(1) as threads:
        async with Worker(
            client,
            task_queue=queue,
            workflows=[Retrying],
            activities=[fails_once],
            activity_executor=threads,
            interceptors=[TakeoverInterceptor()],
        ):
            limit = timedelta(seconds=30)
            assert await client.execute_workflow(Retrying.run, id=queue, task_queue=queue, execution_timeout=limit) == 2
