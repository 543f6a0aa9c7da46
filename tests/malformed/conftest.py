"""One system for all malformed inputs; it has to be in good health at the end."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.lab import Lab, make_agent, running_lab
from tests.services.postgres import PostgresService, postgres  # noqa: F401 - a fixture


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def lab(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, client: Client
) -> AsyncIterator[Lab]:
    """A system on each kind of store."""
    async with ScriptedModelServer() as server:
        queue = f"malformed-{uuid.uuid4().hex[:8]}"
        agents = [make_agent(server)]
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('malformed') / 'store.db'}"
            async with running_lab(client, server, queue, url, agents) as started:
                yield started
        else:
            service: PostgresService = request.getfixturevalue("postgres")
            with service.database() as url:
                async with running_lab(client, server, queue, url, agents) as started:
                    yield started
