"""Worker versioning: which build a worker is, and which build new turns go to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from temporalio.api.enums.v1 import TaskQueueType, WorkerVersioningMode
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from everturn.errors import BadInput
from everturn.settings import Settings
from everturn.workflows.reconcile import ReconcileWorkflow, VersionedReconcileWorkflow
from everturn.workflows.settle import SettleWorkflow, VersionedSettleWorkflow
from everturn.workflows.turn import TurnWorkflow

WORKFLOWS: Final[Sequence[type]] = (TurnWorkflow, ReconcileWorkflow, SettleWorkflow)
"""The workflows of a worker without a build id."""
_VERSIONED: Final[dict[type, type]] = {
    ReconcileWorkflow: VersionedReconcileWorkflow,
    SettleWorkflow: VersionedSettleWorkflow,
}
_RPC_TIMEOUT: Final = timedelta(seconds=5)


def deployment_of(settings: Settings) -> WorkerDeploymentConfig | None:
    """The deployment that the settings name, None if they name none. Raises BadInput if they name half of one."""
    if settings.deployment_name is None and settings.build_id is None:
        return None
    if not settings.deployment_name or not settings.build_id:
        missing = "EVERTURN_BUILD_ID" if settings.deployment_name else "EVERTURN_DEPLOYMENT_NAME"
        raise BadInput(f"a versioned worker needs a deployment name and a build id; set {missing}, too, or neither")
    if "." in settings.deployment_name or ":" in settings.deployment_name:
        raise BadInput(f"the deployment name {settings.deployment_name!r} has a '.' or ':'; Temporal allows neither")
    version = WorkerDeploymentVersion(settings.deployment_name, settings.build_id)
    return WorkerDeploymentConfig(version, use_worker_versioning=True)


def apply_deployment(config: dict[str, Any], deployment: WorkerDeploymentConfig | None) -> None:
    """Makes a worker's configuration that of a build, its own or else the given one; no build, no change.

    A turn stays on the build that it began on, unless the caller says otherwise. That is a default of the worker, and
    not of the workflow, because the server refuses a workflow's own behaviour from workers without a build id.
    """
    given: WorkerDeploymentConfig | None = config.get("deployment_config") or deployment
    if given is None or not given.use_worker_versioning:
        return
    if given.default_versioning_behavior == VersioningBehavior.UNSPECIFIED:
        given = dataclasses.replace(given, default_versioning_behavior=VersioningBehavior.PINNED)
    config["deployment_config"] = given
    config["workflows"] = [_VERSIONED.get(workflow, workflow) for workflow in config["workflows"]]


@dataclass(frozen=True, slots=True)
class Pollers:
    """Who polls a task queue for turns. builds: (deployment, build id) of versioned workers. current: the build that
    new turns go to, None if they go to workers without a build id."""

    identities: list[str]
    builds: list[tuple[str, str]]
    unversioned: int
    current: tuple[str, str] | None

    @property
    def missing(self) -> tuple[str, str] | None:
        """Why new turns find no worker, and what to do about it; None if they find one."""
        if not self.builds or self.current in self.builds or (self.current is None and self.unversioned):
            return None
        deployment, build = self.builds[-1]
        what = f"the current version {'.'.join(self.current)} has no worker" if self.current else "no current version"
        return what, f"run {set_current(deployment, build)}"


def set_current(deployment: str, build: str) -> str:
    """The command that sends new turns to a build."""
    return f"temporal worker deployment set-current-version --deployment-name {deployment} --build-id {build}"


async def pollers_of(client: Client, task_queue: str) -> Pollers:
    """Raises RPCError."""
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=task_queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        ),
        timeout=_RPC_TIMEOUT,
    )
    mode = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
    options = [poller.deployment_options for poller in answer.pollers]
    builds = {(o.deployment_name, o.build_id) for o in options if o.worker_versioning_mode == mode}
    unversioned = sum(o.worker_versioning_mode != mode for o in options)
    found = answer.versioning_info.current_deployment_version
    current = (found.deployment_name, found.build_id) if found.build_id else None
    return Pollers(sorted({poller.identity for poller in answer.pollers}), sorted(builds), unversioned, current)
