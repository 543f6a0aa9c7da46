"""A fresh database with the store's tables for each system, copied from a template."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from everturn import Store
from tests.services.postgres import PostgresService, postgres_service

KINDS = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Databases:
    """postgres: None where it was not asked for."""

    template: Path
    postgres: PostgresService | None
    postgres_template: str

    @asynccontextmanager
    async def fresh(self, kind: str, folder: Path) -> AsyncIterator[str]:
        """The URL of a database that nobody else uses."""
        if kind == "sqlite":
            await asyncio.to_thread(shutil.copyfile, self.template, folder / "store.db")
            yield f"sqlite:///{folder / 'store.db'}"
            return
        assert self.postgres is not None
        database = self.postgres.database(self.postgres_template)
        url = await asyncio.to_thread(database.__enter__)
        try:
            yield url
        finally:
            await asyncio.to_thread(database.__exit__, None, None, None)


@asynccontextmanager
async def open_databases(folder: Path, kinds: tuple[str, ...]) -> AsyncIterator[Databases]:
    """Makes the templates; starts PostgreSQL if it is among the kinds."""
    async with AsyncExitStack() as stack:
        template = folder / "template.db"
        await _with_tables(f"sqlite:///{template}")
        postgres, name = None, ""
        if "postgresql" in kinds:
            postgres = await asyncio.to_thread(stack.enter_context, postgres_service())
            url = stack.enter_context(postgres.database())
            await _with_tables(url)
            name = url.rpartition("/")[2].partition("?")[0]
        yield Databases(template, postgres, name)


async def _with_tables(url: str) -> None:
    store = await Store.open(url, create=True)
    await store.close()
