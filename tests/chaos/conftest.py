"""Fixtures of the chaos tests: what their many small systems share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.databases import Databases, open_databases
from tests.chaos.matrix import open_services
from tests.chaos.stage import Services
from tests.services.temporal import TemporalService


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def services(temporal: TemporalService) -> AsyncIterator[Services]:
    async with open_services(temporal.address) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def databases(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Databases]:
    """SQLite alone; `make chaos` has both."""
    folder: Path = tmp_path_factory.mktemp("chaos")
    async with open_databases(folder, ("sqlite",)) as opened:
        yield opened
