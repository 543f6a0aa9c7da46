"""Services that are real and shared; tests keep apart by unique ids and task queues."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import AsyncIterator

import hypothesis
import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn.activities.scripted import ScriptedModelServer
from tests.services.temporal import TemporalService, temporal_service

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("everturn", deadline=None)
hypothesis.settings.load_profile("everturn")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal() -> AsyncIterator[TemporalService]:
    """The session's Temporal server."""
    async with temporal_service() as service:
        yield service


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def client(temporal: TemporalService) -> Client:
    """One Temporal client for all tests of the session."""
    return await temporal.connect()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model_server() -> AsyncIterator[ScriptedModelServer]:
    """A model server whose scenarios are chosen by the model's name."""
    async with ScriptedModelServer() as server:
        yield server


@pytest.fixture
def task_queue(request: pytest.FixtureRequest) -> str:
    """A task queue that no other test uses."""
    return f"{request.node.name[:60]}-{uuid.uuid4().hex[:8]}"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Leaves as the product's commands do: the SDK's native threads can crash an interpreter that finalizes."""
    code = config.stash.get(EXIT_CODE, None)
    if code is not None and "temporalio" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


EXIT_CODE = pytest.StashKey[int]()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[EXIT_CODE] = int(exitstatus)
