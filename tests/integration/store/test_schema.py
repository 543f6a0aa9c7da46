"""Opening, creating and migrating a store."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from everturn.chunks import Event
from everturn.errors import StoreUnavailable
from everturn.store import schema
from everturn.store.address import parse_address
from everturn.store.store import Store
from everturn.store.tables import METADATA
from tests.integration.store.builders import run_turn


def connected(url: str) -> Any:
    return create_engine(parse_address(url).url, poolclass=NullPool).begin()


async def test_the_migrations_make_exactly_the_tables_of_the_models(empty_url: str) -> None:
    await (await Store.open(empty_url, create=True)).close()
    with connected(empty_url) as connection:
        options = {"compare_type": True, "compare_server_default": True, "version_table": schema.VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, METADATA) == []
        made = {table: _keys(connection, table) for table in METADATA.tables}
    with create_engine("sqlite://", poolclass=NullPool).begin() as memory:
        METADATA.create_all(memory)
        assert made == {table: _keys(memory, table) for table in METADATA.tables}


async def test_the_newest_revision_is_the_one_that_the_code_expects() -> None:
    scripts = ScriptDirectory(str(Path(schema.__file__).parent / "migrations"))
    assert scripts.get_heads() == [schema.REVISION]


async def test_the_first_revision_can_be_taken_back(empty_url: str) -> None:
    await (await Store.open(empty_url, create=True)).close()
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
    with connected(empty_url) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        assert inspect(connection).get_table_names() == [schema.VERSION_TABLE]


async def test_setup_may_be_repeated_and_keeps_the_data(empty_url: str) -> None:
    store = await Store.open(empty_url, create=True)
    await run_turn(store)
    await store.migrate()
    await store.close()
    store = await Store.open(empty_url, create=True)
    assert await store.revision() == schema.REVISION
    assert len(await store.messages("t")) == 2
    await store.close()


async def test_many_processes_may_create_the_same_store_at_once(empty_url: str) -> None:
    script = (
        "import asyncio, sys\n"
        "from everturn.store.store import Store\n"
        "async def main():\n"
        "    store = await Store.open(sys.argv[1], create=True, timeout=30)\n"
        "    print(await store.revision())\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, empty_url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        for _ in range(4)
    ]
    async with asyncio.timeout(60):
        ends = [await process.communicate() for process in started]
    assert ends == [(b"0001\n", b"")] * 4


async def test_a_database_without_tables_is_refused_with_the_command_to_run(empty_url: str) -> None:
    with pytest.raises(StoreUnavailable, match="everturn setup"):
        await Store.open(empty_url)


async def test_opening_a_missing_file_does_not_create_it(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"does not exist; run `everturn setup`"):
        await Store.open(f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(StoreUnavailable, match=r"folder .* does not exist"):
        await Store.open(f"sqlite:///{tmp_path / 'no' / 'none.db'}", create=True)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database at all, but long enough to have a header " * 20)
    with pytest.raises(StoreUnavailable, match="not a database"):
        await Store.open(f"sqlite:///{tmp_path / 'x.db'}")


@pytest.mark.parametrize("create", [True, False])
async def test_a_schema_of_another_version_is_refused(store_url: str, create: bool) -> None:
    with connected(store_url) as connection:
        connection.execute(text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(StoreUnavailable, match=r"revision 9999.*install"):
        await Store.open(store_url, create=create)


async def test_a_server_that_is_down_is_reported_in_time_and_without_the_password() -> None:
    url = "postgres://me:hush-hush@127.0.0.1:1/db?sslpassword=also-secret"
    async with asyncio.timeout(10):
        with pytest.raises(StoreUnavailable, match=r"me:\*\*\*@127\.0\.0\.1") as caught:
            await Store.open(url, timeout=1.0)
    shown = f"{caught.value!r} {caught.value} {caught.value.__cause__!r} {caught.value.__cause__}"
    assert "hush" not in shown
    assert "also-secret" not in shown


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)  # SQLite's missing file has its own test
async def test_a_database_that_does_not_exist_is_reported_at_once(store_url: str) -> None:
    missing = store_url.replace("everturn_", "missing_")
    async with asyncio.timeout(4):
        with pytest.raises(StoreUnavailable, match="does not exist"):
            await Store.open(missing, timeout=60)


async def test_the_representation_and_the_url_hide_the_password(store_url: str, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    given = store_url.replace("everturn@", "everturn:hush-hush@")
    store = await Store.open(given)
    assert "hush" not in repr(store) + store.url + caplog.text
    await store.close()


async def test_a_closed_store_says_so(store_url: str) -> None:
    store = await Store.open(store_url)
    writer = store.writer("r0", 0, 1)
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.head("r0")
    with pytest.raises(StoreUnavailable, match="closed"):
        _ = [chunk async for chunk in store.tail("r0")]
    writer.put(Event("start-step"))
    with pytest.raises(StoreUnavailable, match="closed"):
        await writer.drain()


def _keys(connection: Connection, table: str) -> Any:
    """What alembic does not compare: primary keys and foreign keys with their cascades."""
    found = inspect(connection)
    foreign = [
        (key["constrained_columns"], key["referred_table"], key.get("options", {}).get("ondelete"))
        for key in found.get_foreign_keys(table)
    ]
    return found.get_pk_constraint(table)["constrained_columns"], sorted(foreign)
