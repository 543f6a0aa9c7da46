"""Turn workflows as others see them: whether one still runs, which of many do, and the signal that wakes one."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from everturn.activities.payloads import CancelRequest
from everturn.ids import workflow_id

RPC_TIMEOUT: Final = timedelta(seconds=8)
logger = logging.getLogger("everturn.turns")
_CLOSED: Final = {
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED: "completed",
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED: "failed",
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED: "canceled",
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED: "terminated",
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: "timed_out",
}
"""Whatever else there is (running, paused, going on as new) may still finish its turn."""
_QUOTABLE: Final = re.compile(r"[\w.:-]+", re.ASCII)
"""Ids that can stand in a visibility query as they are; others are looked up one by one."""


@dataclass(frozen=True, slots=True)
class Found:
    """A turn's newest workflow run. closed: how it ended, None if it may go on."""

    closed: str | None
    task_queue: str

    @property
    def gone(self) -> str | None:
        """Why this workflow will not finish its turn, if it has not yet."""
        return f"the turn's workflow ended as {self.closed} before the turn was finished" if self.closed else None


NEVER_STARTED: Final = "Temporal does not know the turn's workflow: it never started, or is past its retention"


async def find_workflow(client: Client, request_id: str, rpc_timeout: timedelta = RPC_TIMEOUT) -> Found | None:
    """The turn's workflow; None if Temporal has none. Raises RPCError."""
    execution = WorkflowExecution(workflow_id=workflow_id(request_id))
    request = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=execution)
    try:
        described = await client.workflow_service.describe_workflow_execution(request, retry=True, timeout=rpc_timeout)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
    info = described.workflow_execution_info
    return Found(_CLOSED.get(info.status), info.task_queue)


async def listed_as_running(client: Client, request_ids: Sequence[str]) -> set[str]:
    """Those of the turns that Temporal's visibility lists as running: one call for all. It lags behind by a moment, so
    that a turn that is not listed has to be looked up. Raises RPCError."""
    quoted = {workflow_id(request_id): request_id for request_id in request_ids if _QUOTABLE.fullmatch(request_id)}
    if not quoted:
        return set()
    ids = ", ".join(f"'{name}'" for name in quoted)
    query = f"ExecutionStatus = 'Running' AND WorkflowId IN ({ids})"
    found = client.list_workflows(query, rpc_timeout=RPC_TIMEOUT)
    return {quoted[workflow.id] async for workflow in found}


async def wake(client: Client, request_id: str) -> None:
    """Tells a queued turn that it is next, or over. A lost wake-up costs time only: it checks by timer, too."""
    try:
        await client.get_workflow_handle(workflow_id(request_id)).signal("your_turn", rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:  # a workflow that has ended needs no waking
            logger.warning("turn %s could not be woken: %s", request_id, error)


async def stop(client: Client, request_id: str, reason: str) -> None:
    """Asks a turn to end, as its user would; one that has ended meanwhile is left alone. Raises RPCError."""
    handle = client.get_workflow_handle(workflow_id(request_id))
    try:
        await handle.signal("cancel_chat", CancelRequest(reason), rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
