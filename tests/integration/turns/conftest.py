"""Fixtures of the turn tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn import Agent
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.lab import Lab, running_lab

StartLab = Callable[..., AbstractAsyncContextManager[Lab]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scripted_server() -> AsyncIterator[ScriptedModelServer]:
    """One scripted model server; tests keep apart by the texts of their conversations."""
    async with ScriptedModelServer() as server:
        yield server


@pytest.fixture
def start_lab(client: Client, scripted_server: ScriptedModelServer, task_queue: str, tmp_path: Path) -> StartLab:
    """Starts a system with the given agents: `async with start_lab(agent) as lab`."""
    url = f"sqlite:///{tmp_path / 'store.db'}"

    def start(*agents: Agent, **options: Any) -> AbstractAsyncContextManager[Lab]:
        return running_lab(client, scripted_server, task_queue, url, agents, **options)

    return start
