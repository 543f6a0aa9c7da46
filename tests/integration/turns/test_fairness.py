"""Tenants share busy workers: one with a long backlog does not keep the others waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from temporalio.client import Client

from everturn.activities.scripted.server import ScriptedModelServer
from everturn.client.attributes import priority_of
from everturn.ids import workflow_id
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, running_lab

BACKLOG = 18
NARROW: dict[str, Any] = {"max_concurrent_activities": 1, "max_concurrent_workflow_tasks": 2, "pollers": 2}
"""A worker so small that a backlog stays with the server, which alone can be fair."""


@pytest_asyncio.fixture(loop_scope="session")
async def fair_temporal() -> AsyncIterator[Client]:
    """A Temporal that balances by fairness keys; in one partition, as each has an order of its own."""
    fair = (
        ("matching.enableFairness", "true"),
        ("matching.numTaskqueueReadPartitions", "1"),
        ("matching.numTaskqueueWritePartitions", "1"),
    )
    options = ServerOptions(state_file=None, ui=False, dynamic_config=fair)
    async with EmbeddedServer(options) as server:
        yield await Client.connect(server.address)


async def test_a_turn_carries_its_tenant_as_fairness_key(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server), workers=0) as lab:
        keys: dict[str | None, str] = {}
        for tenant in ("acme", None, "ü" * 33):
            turn = await lab.play("ok", tenant_id=tenant)
            described = await lab.client.get_workflow_handle(workflow_id(turn.request_id)).describe()
            keys[tenant] = described.raw_description.workflow_execution_info.priority.fairness_key
        assert (keys["acme"], keys[None], len(keys["ü" * 33])) == ("acme", "", 64)


def test_a_tenant_whose_id_is_too_long_for_a_key_keeps_one_key_of_its_own() -> None:
    long, other = priority_of("x" * 65), priority_of("x" * 66)
    assert long == priority_of("x" * 65)
    assert len({long.fairness_key, other.fairness_key, priority_of("x" * 64).fairness_key}) == 3


async def test_a_tenant_with_few_turns_does_not_wait_behind_the_backlog_of_another(
    fair_temporal: Client, scripted_server: ScriptedModelServer, task_queue: str, store_url: str
) -> None:
    agent = make_agent(scripted_server)
    async with running_lab(fair_temporal, scripted_server, task_queue, store_url, [agent], workers=0) as lab:
        crowd = [await lab.play("ok", tenant_id="crowd") for _ in range(BACKLOG)]
        few = [await lab.play("ok", tenant_id="few") for _ in range(2)]
        async with running_lab(fair_temporal, scripted_server, task_queue, store_url, [agent], **NARROW):
            async with asyncio.timeout(60):
                await asyncio.gather(*(turn.result() for turn in [*crowd, *few]))
        ends = {turn.request_id: str((await turn.info()).turn.ended_at) for turn in [*crowd, *few]}
        last_of_few = max(ends[turn.request_id] for turn in few)
        later = sum(ends[turn.request_id] > last_of_few for turn in crowd)
        assert later > BACKLOG / 2, f"only {later} turns of the crowd ended later"
