"""docs/store.md is true: its statements run on both databases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.pool import NullPool

from everturn.store.address import parse_address
from everturn.store.store import Store
from everturn.store.tables import METADATA
from tests.integration.store.builders import admission, call, end, record, run_turn

PAGE = (Path(__file__).parents[3] / "docs" / "store.md").read_text()
STATEMENTS = [
    statement.strip()
    for block in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    for statement in re.sub(r"--.*", "", block).split(";")
    if statement.strip()
]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: " ".join(statement.split())[:40])
async def test_a_documented_statement_runs(store: Store, store_url: str, statement: str) -> None:
    await run_turn(store, thread_id="thread-1")
    with create_engine(parse_address(store_url).url, poolclass=NullPool).begin() as connection:
        connection.execute(text(statement))


async def test_deleting_a_thread_deletes_all_that_belongs_to_it(store: Store, store_url: str) -> None:
    await run_turn(store, "r1", "other")
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    await store.commit_step(record(calls=[call()]), [])
    await end(store)
    engine = create_engine(parse_address(store_url).url, poolclass=NullPool)
    if store_url.startswith("sqlite"):
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys = ON"))
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM threads WHERE thread_id = 't'"))
    assert await store.head("r0") is None
    assert await store.messages("t") == []
    with engine.begin() as connection:
        for table in METADATA.tables.values():
            column = table.c.get("request_id")
            if column is not None:
                assert connection.execute(table.select().where(column == "r0")).all() == []
    assert len(await store.messages("other")) == 2


def test_every_table_is_documented() -> None:
    assert all(f"| `{table}` |" in PAGE for table in METADATA.tables)
