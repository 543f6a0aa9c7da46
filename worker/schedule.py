"""The Temporal schedule that starts the reconciler."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Final, Literal

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from everturn.activities.recovery_payloads import RECONCILE_WORKFLOW, ReconcileInput
from everturn.settings import Settings
from everturn.workflows.timeouts import WORKFLOW_TASK_TIMEOUT

RPC_TIMEOUT: Final = timedelta(seconds=10)
RUN_TIMEOUT: Final = timedelta(hours=1)
"""A run takes seconds. One that hangs would keep every later one from starting."""
CATCH_UP: Final = timedelta(minutes=1)
"""Runs that were missed while Temporal was down are not made up for: the next one sees everything."""


def schedule_id(task_queue: str) -> str:
    """One schedule for each task queue: it has a store of its own."""
    return f"everturn-reconcile-{task_queue}"


def unpause(name: str) -> str:
    """The command that lets a paused schedule go on."""
    return f"temporal schedule toggle --unpause --schedule-id {name}"


async def install_schedule(client: Client, settings: Settings) -> Literal["created", "updated"]:
    """Creates the schedule, or brings an existing one up to date (a paused one stays paused). Raises RPCError."""
    name, wanted = schedule_id(settings.task_queue), _schedule(settings)
    try:
        await client.create_schedule(name, wanted, rpc_timeout=RPC_TIMEOUT)
    except ScheduleAlreadyRunningError:
        handle = client.get_schedule_handle(name)

        async def update(found: ScheduleUpdateInput) -> ScheduleUpdate:
            return ScheduleUpdate(dataclasses.replace(wanted, state=found.description.schedule.state))

        await handle.update(update, rpc_timeout=RPC_TIMEOUT)
        return "updated"
    return "created"


async def find_schedule(client: Client, task_queue: str) -> ScheduleDescription | None:
    """The schedule as it is; None if it is not installed. Raises RPCError."""
    try:
        return await client.get_schedule_handle(schedule_id(task_queue)).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise


def _schedule(settings: Settings) -> Schedule:
    every = timedelta(seconds=settings.reconcile_every)
    return Schedule(
        action=ScheduleActionStartWorkflow(
            RECONCILE_WORKFLOW,
            ReconcileInput(),
            id=f"reconcile-{settings.task_queue}",
            task_queue=settings.task_queue,
            run_timeout=RUN_TIMEOUT,
            task_timeout=WORKFLOW_TASK_TIMEOUT,
            static_summary="settle turns that nothing executes any more",
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP),
    )
