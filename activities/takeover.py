"""An activity that is tried again has most often been taken over from a worker that is gone."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any, Final

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from everturn.activities.payloads import activity_name

RPC_TIMEOUT: Final = timedelta(seconds=2)
logger = logging.getLogger("everturn.worker")


class TakeoverInterceptor(Interceptor):
    """Lets any worker have the next workflow task of an activity that is tried again.

    Temporal would keep it for the worker that had the last one, until that one's patience (`STICKY_TIMEOUT`) ends: two
    seconds of silence for a turn that has just been rescued. A worker that still lives reads the history again. The
    activities of others on the same worker are left alone.
    """

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """See base class."""
        return _TakenOver(next)


class _TakenOver(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the name in the base class
        """See base class."""
        info = activity.info()
        is_ours = info.activity_type.startswith(activity_name(""))
        if info.is_local or info.attempt == 1 or not is_ours:
            return await super().execute_activity(input)
        freeing = asyncio.ensure_future(_free(info))
        try:
            return await super().execute_activity(input)
        finally:
            await freeing


async def _free(info: activity.Info) -> None:
    client = activity.client()
    execution = WorkflowExecution(workflow_id=info.workflow_id or "", run_id=info.workflow_run_id or "")
    request = ResetStickyTaskQueueRequest(namespace=client.namespace, execution=execution)
    try:
        await client.workflow_service.reset_sticky_task_queue(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        logger.info("the next task of %s waits for the worker that had the last: %s", info.workflow_id, error.message)
