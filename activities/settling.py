"""Settling a lost turn: one way for the queue's timer, for clients that wait, and for the reconciler.

The settle workflow does it, so that the author's hooks are asked and told, once, whoever finds the turn first. Where no
worker runs that workflow, a waiting client or turn settles the rows by itself; the hooks are told when one is back.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from everturn.activities.recovery_payloads import SETTLE_WORKFLOW, SettleInput
from everturn.activities.turn_workflows import RPC_TIMEOUT, wake
from everturn.errors import TurnNotFound
from everturn.store.records import Ending
from everturn.store.store import Store
from everturn.turns import TurnError

LOST: Final = "lost"
"""Type of the error of a turn whose workflow was gone before its end."""
PATIENCE: Final = 5.0
"""Seconds that somebody who waits for a lost turn leaves to the settle workflow."""

logger = logging.getLogger("everturn.settling")


def settle_id(request_id: str) -> str:
    return f"settle-{request_id}"


async def start_settling(client: Client, request_id: str, task_queue: str) -> WorkflowHandle[Any, Any]:
    """Starts the settle workflow, or finds the one that runs. Raises RPCError."""
    return await client.start_workflow(
        SETTLE_WORKFLOW,
        SettleInput(request_id),
        id=settle_id(request_id),
        task_queue=task_queue,
        # One that saw the turn still alive must not stand in the way of a later one.
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        static_summary=f"settle turn {request_id}",
        rpc_timeout=RPC_TIMEOUT,
    )


async def settle_lost(client: Client, store: Store, request_id: str, task_queue: str, reason: str) -> None:
    """Sees to it that a turn without a workflow is over. Raises RPCError or StoreUnavailable.

    reason: one sentence for the error, if the hooks cannot be asked. A turn that the store does not know stays unknown.
    """
    handle = await start_settling(client, request_id, task_queue)
    try:
        async with asyncio.timeout(PATIENCE):
            await handle.result()
    except (TimeoutError, WorkflowFailureError) as error:
        logger.warning("turn %s is settled without its hooks: %r", request_id, error)
    else:
        return
    try:
        ended = await store.finish(Ending(request_id, "error", "error", TurnError(LOST, reason)))
    except TurnNotFound:
        logger.warning("turn %s never began", request_id)
        return
    if ended.next_request_id is not None:
        await wake(client, ended.next_request_id)
