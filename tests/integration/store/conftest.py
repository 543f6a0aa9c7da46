"""Every test of the store runs on SQLite and on PostgreSQL, each on a fresh database with its tables made."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from everturn.store.store import Store
from tests.services.postgres import PostgresService, postgres  # noqa: F401 - a fixture

KINDS = ("sqlite", "postgresql")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the tables, to be copied."""
    path = tmp_path_factory.mktemp("template") / "everturn.db"
    store = await Store.open(f"sqlite:///{path}", create=True)
    await store.close()
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_template(postgres: PostgresService) -> AsyncIterator[str]:  # noqa: F811
    """Name of a PostgreSQL database with the tables, to be used as a template."""
    with postgres.database() as url:
        store = await Store.open(url, create=True)
        await store.close()
        yield url.rpartition("/")[2].partition("?")[0]


@pytest.fixture(params=KINDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'everturn.db'}"
        return
    service: PostgresService = request.getfixturevalue("postgres")
    with service.database() as url:
        yield url


@pytest.fixture(params=KINDS)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of a fresh database with the tables."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            path = tmp_path / "everturn.db"
            shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
            yield f"sqlite:///{path}"
        else:
            service: PostgresService = request.getfixturevalue("postgres")
            yield stack.enter_context(service.database(request.getfixturevalue("postgres_template")))


@pytest_asyncio.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    opened = await Store.open(store_url)
    yield opened
    await opened.close()
