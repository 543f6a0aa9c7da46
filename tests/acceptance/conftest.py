"""A running system, made of the shipped commands alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from everturn.activities.scripted import ScriptedModelServer
from tests.services.commands import CommandLine, free_ports

AGENTS = Path(__file__).with_name("agents.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each step of these tests has its own deadline; a test of several commands needs more than the usual limit."""
    for item in items:
        if item.path.parent == AGENTS.parent and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture
def bare(tmp_path: Path) -> CommandLine:
    """Commands in an empty folder, with nothing running."""
    return CommandLine(tmp_path)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def system(
    tmp_path_factory: pytest.TempPathFactory, model_server: ScriptedModelServer
) -> AsyncIterator[CommandLine]:
    """Commands that reach a Temporal server, a set-up store, and a worker with the sample agent and those of ours."""
    folder = tmp_path_factory.mktemp("system")
    async with await CommandLine(folder).start("server", "--in-memory", *free_ports()) as server:
        address = (await server.says(r"Temporal\s+(\S+:\d+)")).group(1)
        line = CommandLine(
            folder,
            {
                "EVERTURN_TARGET": address,
                "EVERTURN_STORE": f"sqlite:///{folder}/everturn.db",
                "TEST_MODEL_SERVER": model_server.base_url,
            },
        )
        assert (await line.run("setup")).code == 0
        async with await line.start("worker", "everturn.worker.sample", str(AGENTS)) as worker:
            await worker.says("polls task queue")
            yield line
        assert worker.process.returncode == 0
