"""Fixtures of the turn tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn import Agent, Model
from everturn.activities.models.lanes import ModelLanes
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.agent import Lane
from tests.integration.turns.lab import Lab, running_lab

LANES: tuple[Lane, ...] = ("auto", "litellm")
StartLab = Callable[..., AbstractAsyncContextManager[Lab]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scripted_server() -> AsyncIterator[ScriptedModelServer]:
    """One scripted model server; tests keep apart by the texts of their conversations."""
    async with ScriptedModelServer() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session", autouse=True)
async def warm_models() -> None:
    """The model layer loads for seconds; here, so that no test's time limit has to allow for it."""
    await ModelLanes().warm_up([Model("openai/scripted", lane=lane) for lane in LANES])


@pytest.fixture(params=LANES)
def model(request: pytest.FixtureRequest, scripted_server: ScriptedModelServer) -> Model:
    """The scripted model, by each way to reach it."""
    return Model("openai/scripted", api_base=scripted_server.base_url, lane=request.param)


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """Address of the test's store."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def start_lab(client: Client, scripted_server: ScriptedModelServer, task_queue: str, store_url: str) -> StartLab:
    """Starts a system with the given agents: `async with start_lab(agent) as lab`."""

    def start(*agents: Agent, **options: Any) -> AbstractAsyncContextManager[Lab]:
        return running_lab(client, scripted_server, task_queue, store_url, agents, **options)

    return start
