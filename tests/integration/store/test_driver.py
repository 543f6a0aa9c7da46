"""Statements that run on the database's driver: the same rows and the same errors as by SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, bindparam, delete, exc, func, insert, select, update

from everturn.errors import BadInput
from everturn.store import driver
from everturn.store.address import parse_address
from everturn.store.driver import DriverConnection, PostgresConnection, SqliteConnection
from everturn.store.engines import postgres_engine, sqlite_engine
from everturn.store.faults import is_transient
from everturn.store.tables import messages, threads

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
INSERT_THREAD = insert(threads)
INSERT_MESSAGES = insert(messages)
THREAD = select(threads.c.thread_id, threads.c.context, threads.c.created_at, threads.c.summary).where(
    threads.c.thread_id == bindparam("thread")
)
TEXTS = select(messages.c.position, messages.c.parts).where(messages.c.hidden == False)  # noqa: E712 - a literal in SQL
AROUND = select(messages.c.position).where(
    (messages.c.position == bindparam("place") - 1) | (messages.c.position == bindparam("place") + 1)
)
COUNT = select(func.count()).select_from(messages)
RENAME = update(threads).where(threads.c.thread_id == bindparam("thread"))
DELETE = delete(messages).where(messages.c.position >= bindparam("least"))


def thread(name: str, **given: Any) -> dict[str, Any]:
    counters = dict.fromkeys(("last_position", "summary_from", "summary_upto"), 0)
    return {"thread_id": name, "running_request_id": None, "created_at": NOW, **counters, **given}


def message(position: int, text: str = "hi") -> dict[str, Any]:
    shown = {"message_id": f"m{position}", "thread_id": "t", "position": position, "role": "user", "hidden": False}
    return {**shown, "parts": [{"type": "text", "text": text}], "created_at": NOW}


@pytest.fixture
def engine(store_url: str) -> Iterator[Engine]:
    address = parse_address(store_url)
    made = sqlite_engine(address, write=True, timeout=5) if address.is_sqlite else postgres_engine(address, timeout=5)
    yield made
    made.dispose()


def opened(engine: Engine) -> DriverConnection:
    return SqliteConnection(engine) if engine.dialect.name == "sqlite" else PostgresConnection(engine)


@pytest.fixture(params=["driver", "sqlalchemy"])
def connection(request: pytest.FixtureRequest, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """Two ways for the same statements: the driver's, and SQLAlchemy's own."""
    if request.param == "sqlalchemy":
        monkeypatch.setattr(driver, "_plan", lambda *_: None)
    made = opened(engine)
    if isinstance(made, PostgresConnection):
        made.begin_on_driver(write=False)  # each statement by itself: one that fails spoils no transaction
    yield made
    made.close()


def twice(connection: Connection, statement: Any, parameters: Any = None) -> Any:
    """A statement runs on the driver from its second time on; the result of that one."""
    connection.execute(statement, parameters)
    return connection.execute(statement, parameters)


def test_values_are_converted_on_their_way_in_and_out(connection: Connection) -> None:
    connection.execute(INSERT_THREAD, thread("t0"))
    connection.execute(INSERT_THREAD, thread("t", context={"a": ["\x00"]}, summary="lone \ud800"))
    row = twice(connection, THREAD, {"thread": "t"}).one()
    assert (row.thread_id, row.context, row.created_at) == ("t", {"a": ["\ufffd"]}, NOW)
    assert row.summary == "lone \ufffd"
    name, context, *_ = row
    assert (name, context) == ("t", {"a": ["\ufffd"]})


def test_results_have_the_methods_that_the_store_uses(connection: Connection) -> None:
    connection.execute(INSERT_THREAD, thread("t"))
    connection.execute(INSERT_MESSAGES, [message(1), message(2, "ho")])
    connection.execute(INSERT_MESSAGES, [message(3), message(4)])
    found = twice(connection, TEXTS)
    assert [(row.position, row.parts[0]["text"]) for row in found] == [(1, "hi"), (2, "ho"), (3, "hi"), (4, "hi")]
    assert len(connection.execute(TEXTS).all()) == 4
    assert connection.execute(TEXTS).first().position == 1
    assert list(connection.scalars(TEXTS)) == [1, 2, 3, 4]
    assert sorted(twice(connection, AROUND, {"place": 2}).scalars()) == [1, 3]
    assert connection.scalar(COUNT) == connection.scalar(COUNT) == 4
    assert connection.execute(THREAD, {"thread": "nobody"}).one_or_none() is None
    assert connection.execute(THREAD, {"thread": "nobody"}).first() is None
    assert connection.scalar(THREAD, {"thread": "nobody"}) is None
    with pytest.raises(exc.MultipleResultsFound):
        connection.execute(TEXTS).one_or_none()
    with pytest.raises(exc.NoResultFound):
        connection.execute(THREAD, {"thread": "nobody"}).one()
    assert connection.execute(DELETE, {"least": 4}).rowcount == 1
    assert connection.execute(DELETE, {"least": 2}).rowcount == 2


def test_an_update_sets_the_columns_that_are_given_each_time_others(connection: Connection) -> None:
    connection.execute(INSERT_THREAD, thread("t"))
    for values in ({"summary": "a"}, {"summary": "b", "last_position": 7}, {"summary": None}, {"last_position": 8}):
        twice(connection, RENAME, {"thread": "t", **values})
    row = connection.execute(select(threads.c.summary, threads.c.last_position)).one()
    assert tuple(row) == (None, 8)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"last_position": None}, {"sqlite": exc.IntegrityError, "postgresql": exc.IntegrityError}),
        ({"last_position": 2**70}, {"sqlite": OverflowError, "postgresql": exc.DataError}),
        ({"last_position": object()}, {"sqlite": exc.DBAPIError, "postgresql": exc.ProgrammingError}),
        ({"no_such_column": 1}, {"sqlite": exc.OperationalError, "postgresql": exc.ProgrammingError}),
    ],
)
def test_errors_are_sqlalchemys(
    connection: Connection, values: dict[str, Any], expected: dict[str, type[Exception]]
) -> None:
    connection.execute(RENAME, {"thread": "t", "last_position": 1})
    connection.execute(INSERT_THREAD, thread("t"))
    for _ in range(2):
        with pytest.raises(expected[connection.dialect.name]):
            connection.execute(RENAME, {"thread": "t", **values})


def test_a_value_without_a_json_form_is_bad_input_below(connection: Connection) -> None:
    connection.execute(INSERT_THREAD, thread("t"))
    for _ in range(2):
        with pytest.raises((exc.StatementError, BadInput)) as raised:
            connection.execute(RENAME, {"thread": "t", "context": {"a": object()}})
        assert isinstance(getattr(raised.value, "orig", raised.value), BadInput)


def test_a_transaction_is_kept_or_undone_whole_whichever_way_its_statements_went(engine: Engine) -> None:
    connection = opened(engine)
    with connection.transaction(write=True):
        connection.execute(INSERT_THREAD, thread("kept"))
        connection.execute(INSERT_THREAD, thread("kept, too"))
    with pytest.raises(ZeroDivisionError), connection.transaction(write=True):
        connection.execute(INSERT_THREAD, thread("lost"))
        connection.execute(insert(threads), thread("lost, too"))
        raise ZeroDivisionError
    with connection.transaction(write=False):
        assert sorted(connection.scalars(select(threads.c.thread_id))) == ["kept", "kept, too"]
    connection.close()


def test_a_lock_that_somebody_else_has_is_an_operational_error(engine: Engine) -> None:
    mine, others = opened(engine), opened(engine)
    with mine.transaction(write=True):
        mine.execute(INSERT_THREAD, thread("t"))
    soon = "PRAGMA busy_timeout = 1" if engine.dialect.name == "sqlite" else "SET lock_timeout = 1"
    with mine.transaction(write=False):
        mine.driver.execute(soon)
    with others.transaction(write=True):
        twice(others, RENAME, {"thread": "t", "summary": "theirs"})
        with pytest.raises(exc.OperationalError, match=r"locked|lock timeout"), mine.transaction(write=True):
            twice(mine, RENAME, {"thread": "t", "summary": "mine"})
    with mine.transaction(write=True):
        mine.execute(RENAME, {"thread": "t", "summary": "mine"})
    for connection in (mine, others):
        connection.close()


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_a_connection_that_the_server_has_closed_says_so(engine: Engine) -> None:
    mine, others = opened(engine), opened(engine)
    for way in (COUNT, COUNT, select(1)):
        with mine.transaction(write=True):
            mine.execute(way)
    with others.transaction(write=False):
        others.driver.execute("SELECT pg_terminate_backend(%s)", [mine.driver.info.backend_pid])
    with pytest.raises(exc.DBAPIError) as raised, mine.transaction(write=True):
        mine.execute(COUNT)
    assert raised.value.connection_invalidated
    assert is_transient(raised.value)
    for connection in (mine, others):
        connection.close()
