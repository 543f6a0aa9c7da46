"""One system for all malformed inputs; it has to be in good health at the end."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn import Agent
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.lab import Lab, make_agent, running_lab
from tests.services.postgres import PostgresService, postgres  # noqa: F401 - a fixture

StartLab = Callable[..., AbstractAsyncContextManager[Lab]]


def sample(lab: Lab, cases: Sequence[Any], every: int = 5) -> Sequence[Any]:
    """All cases on SQLite, some on PostgreSQL: what differs is what a database takes."""
    return cases[::every] if lab.store_url.startswith("postgresql") else cases


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def start(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    client: Client,
    model_server: ScriptedModelServer,
) -> StartLab:
    """Starts a system with the given agents on one kind of store."""

    @asynccontextmanager
    async def started(*agents: Agent) -> AsyncIterator[Lab]:
        queue = f"malformed-{uuid.uuid4().hex[:8]}"
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('malformed') / 'store.db'}"
            async with running_lab(client, model_server, queue, url, agents) as lab:
                yield lab
            return
        service: PostgresService = request.getfixturevalue("postgres")
        with service.database() as url:
            async with running_lab(client, model_server, queue, url, agents) as lab:
                yield lab

    return started


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lab(start: StartLab, model_server: ScriptedModelServer) -> AsyncIterator[Lab]:
    """A system with a plain agent."""
    async with start(make_agent(model_server)) as started:
        yield started
