"""Fixtures of the chaos tests: workers in processes of their own, everything else real and shared."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client

from everturn import ChatClient, Store
from everturn.activities.scripted.server import ScriptedModelServer
from tests.chaos.processes import WorkerHouse, worker_house
from tests.services.temporal import TemporalService


@dataclass
class ChaosLab:
    """A client in this process, a store, a scripted model, and a house to start workers in."""

    chat: ChatClient
    store: Store
    house: WorkerHouse
    model_server: ScriptedModelServer
    effects: Path

    def effect_lines(self) -> list[str]:
        return self.effects.read_text().splitlines() if self.effects.exists() else []


@pytest_asyncio.fixture(loop_scope="session")
async def chaos(temporal: TemporalService, client: Client, task_queue: str, tmp_path: Path) -> AsyncIterator[ChaosLab]:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    store = await Store.open(url, create=True)
    async with ScriptedModelServer() as model_server:
        environment = {
            "EVERTURN_TARGET": temporal.address,
            "EVERTURN_NAMESPACE": temporal.namespace,
            "EVERTURN_TASK_QUEUE": task_queue,
            "EVERTURN_STORE": url,
            "CHAOS_MODEL_URL": model_server.base_url,
            "CHAOS_EFFECTS": str(tmp_path / "effects.txt"),
        }
        async with worker_house(environment, tmp_path) as house:
            chat = await ChatClient.connect(client, task_queue=task_queue, store=store)
            yield ChaosLab(chat, store, house, model_server, tmp_path / "effects.txt")
    await store.close()
