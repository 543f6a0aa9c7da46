"""Two builds of a worker at once, on Temporal's worker versioning, with the commands that an operator uses."""

from __future__ import annotations

import asyncio
import logging
import uuid
from asyncio.subprocess import DEVNULL
from contextlib import AsyncExitStack
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.common import VersioningBehavior
from temporalio.worker import Worker

from everturn import Agent, BadInput, EverturnPlugin, Settings, Turn, tool
from everturn.activities.recovery_payloads import RECONCILE_WORKFLOW, ReconcileDone, ReconcileInput
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from everturn.worker.cli.doctor import worker_finding
from everturn.worker.server_command import find_binary
from everturn.worker.versioning import pollers_of, set_current
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, Lab, eventually, make_agent
from tests.services.temporal import TemporalService

ASK = "tools tool=pay args='{\"amount\": 7}' | ok"


def agent_of(build: str, server: ScriptedModelServer) -> Agent:
    """The agent as this build has it."""

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        return f"{amount} paid by build {build}"

    return make_agent(server, tools=[pay])


async def approved(lab: Lab, turn: Turn) -> Any:
    """Approves the turn's call; what the tool gave."""
    asked = await lab.until(turn, "tool-approval-request")
    assert await lab.chat.approve(turn.request_id, asked.data["toolCallId"]) == "accepted"
    assert (await turn.result(WAIT)).ok
    (call,) = (await lab.chat.inspect(turn.request_id)).tool_calls
    return call.output


async def make_current(temporal: TemporalService, deployment: str, build: str) -> None:
    """Runs the documented command, once the build's worker is known."""
    await run_temporal(temporal, f"{set_current(deployment, build)} --yes")


async def run_temporal(temporal: TemporalService, command: str) -> None:
    """Runs a command of the Temporal CLI until it succeeds: what it names may not be known yet."""
    arguments = [find_binary(), *command.split()[1:], "--address", temporal.address]

    async def done() -> bool:
        process = await asyncio.create_subprocess_exec(*arguments, stdout=DEVNULL, stderr=DEVNULL)
        return await process.wait() == 0

    await eventually(done, f"{command} succeeds")


def move_to(deployment: str, build: str, turn: Turn) -> str:
    """The documented command that moves a turn to another build."""
    return (
        f"temporal workflow update-options --workflow-id {workflow_id(turn.request_id)} "
        f"--versioning-override-behavior pinned --versioning-override-deployment-name {deployment} "
        f"--versioning-override-build-id {build}"
    )


async def version_of(lab: Lab, turn_workflow: str) -> tuple[str, VersioningBehavior]:
    described = await lab.client.get_workflow_handle(turn_workflow).describe()
    info = described.raw_description.workflow_execution_info.versioning_info
    return info.deployment_version.build_id, VersioningBehavior(info.behavior)


async def test_a_waiting_turn_stays_on_its_build_and_new_turns_go_to_the_current_one(
    start_lab: StartLab, scripted_server: ScriptedModelServer, temporal: TemporalService, client: Client
) -> None:
    deployment = f"shop-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:

        async def start(build: str) -> Lab:
            agent = agent_of(build, scripted_server)
            return await stack.enter_async_context(start_lab(agent, deployment_name=deployment, build_id=build))

        lab = await start("A")
        early = await lab.play(ASK)

        async def polls() -> bool:
            pollers = await pollers_of(client, lab.task_queue)
            return pollers.builds == [(deployment, "A")] and pollers.current is None

        await eventually(polls, "the build polls the task queue")
        finding = await worker_finding(client, lab.task_queue)
        assert (finding.state, finding.exit_code) == ("FAIL", 1)
        assert finding.advice == f"run {set_current(deployment, 'A')}"
        assert await lab.store.head(early.request_id) is None, "without a current version new turns wait"

        await make_current(temporal, deployment, "A")
        await lab.until(early, "tool-approval-request")
        await start("B")
        await make_current(temporal, deployment, "B")
        late = await lab.play(ASK)
        await lab.until(late, "tool-approval-request")
        pinned = VersioningBehavior.PINNED
        assert await version_of(lab, workflow_id(early.request_id)) == ("A", pinned)
        assert await version_of(lab, workflow_id(late.request_id)) == ("B", pinned)
        assert await approved(lab, early) == "7 paid by build A"
        assert await approved(lab, late) == "7 paid by build B"
        assert (await worker_finding(client, lab.task_queue)).state == "ok"

        await make_current(temporal, deployment, "A")
        after_rollback = await lab.play(ASK)
        await lab.until(after_rollback, "tool-approval-request")
        assert await version_of(lab, workflow_id(after_rollback.request_id)) == ("A", pinned)
        await run_temporal(temporal, move_to(deployment, "B", after_rollback))
        assert await approved(lab, after_rollback) == "7 paid by build B"

        look = f"look-{uuid.uuid4().hex[:8]}"
        await client.execute_workflow(
            RECONCILE_WORKFLOW, ReconcileInput(), id=look, task_queue=lab.task_queue, result_type=ReconcileDone
        )
        assert await version_of(lab, look) == ("A", VersioningBehavior.AUTO_UPGRADE)


async def test_a_worker_says_how_its_build_is_made_current(
    client: Client, scripted_server: ScriptedModelServer, store_url: str, task_queue: str, caplog: Any
) -> None:
    from everturn import run_worker

    caplog.set_level(logging.WARNING, "everturn.worker")
    started, stop = asyncio.Event(), asyncio.Event()
    running = asyncio.ensure_future(
        run_worker(
            [make_agent(scripted_server)],
            client=client,
            task_queue=task_queue,
            store=store_url,
            create_store=True,
            deployment_name="shop",
            build_id="next",
            started=started,
            stop=stop,
        )
    )
    await asyncio.wait_for(started.wait(), WAIT)
    stop.set()
    await asyncio.wait_for(running, WAIT)
    assert "build next of deployment shop gets no new turns until it is made current: " in caplog.text
    assert set_current("shop", "next") in caplog.text


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"build_id": "1"}, "EVERTURN_DEPLOYMENT_NAME"),
        ({"deployment_name": "shop"}, "EVERTURN_BUILD_ID"),
        ({"deployment_name": "my.shop", "build_id": "1"}, r"'my\.shop' has a '\.'"),
    ],
)
def test_half_a_build_is_refused(scripted_server: ScriptedModelServer, given: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        EverturnPlugin([make_agent(scripted_server)], settings=Settings(**given))  # type: ignore[arg-type]  # strings


async def test_a_callers_own_deployment_config_counts(client: Client, scripted_server: ScriptedModelServer) -> None:
    from temporalio.common import WorkerDeploymentVersion
    from temporalio.worker import WorkerDeploymentConfig

    plugin = EverturnPlugin([make_agent(scripted_server)])
    own = WorkerDeploymentConfig(WorkerDeploymentVersion("shop", "7"), use_worker_versioning=True)
    worker = Worker(client, task_queue="any", plugins=[plugin], deployment_config=own)
    config = worker.config(active_config=True)
    deployment = config.get("deployment_config")
    assert deployment is not None
    assert deployment.version.build_id == "7"
    assert deployment.default_versioning_behavior == VersioningBehavior.PINNED


async def test_a_turn_of_a_worker_without_a_build_id_goes_on_at_the_first_current_build(
    start_lab: StartLab, scripted_server: ScriptedModelServer, temporal: TemporalService
) -> None:
    deployment = f"shop-{uuid.uuid4().hex[:8]}"
    async with start_lab(agent_of("first", scripted_server), deployment_name=deployment, build_id="first") as lab:
        async with start_lab(agent_of("none", scripted_server), graceful_shutdown=0.1):
            turn = await lab.play(ASK)
            asked = await lab.until(turn, "tool-approval-request")
        await make_current(temporal, deployment, "first")
        assert await lab.chat.approve(turn.request_id, asked.data["toolCallId"]) == "accepted"
        assert (await turn.result(WAIT)).ok
        (call,) = (await lab.chat.inspect(turn.request_id)).tool_calls
        assert call.output == "7 paid by build first"
