"""The schema's revision: checked when a store is opened, moved forward by `everturn setup`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import Column, Connection, MetaData, Table, Text, func, inspect, select, text

REVISION: Final = "0001"
"""The newest revision under `migrations/versions`, which this code works with."""
VERSION_TABLE: Final = "everturn_schema"
"""Not alembic's default name: an application may keep its own migrations in the same database."""
_MIGRATION_LOCK: Final = 0x45_56_45_52  # any constant; PostgreSQL's advisory locks are numbers
_version = Table(VERSION_TABLE, MetaData(), Column("version_num", Text))


def revision(connection: Connection) -> str | None:
    """The revision of the database, None if it has no tables of ours."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.scalar(select(_version.c.version_num))
    return found


def migrate(connection: Connection) -> None:
    """Brings the schema to REVISION within the connection's transaction; processes that start at once take turns.

    Raises alembic's CommandError if the database has a revision that this version does not know.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        connection.execute(text("SET LOCAL statement_timeout = 0"))
    if revision(connection) == REVISION:
        return
    from alembic import command  # 0.2 s, needed at set-up only
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
