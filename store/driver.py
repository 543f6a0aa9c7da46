"""Statements on SQLite without SQLAlchemy's execution, which takes twice as long as SQLite itself.

The statements stay SQLAlchemy's: one that is a constant of a module is compiled once, with its types' conversions, and
then runs on the driver. All others, and all on PostgreSQL, go SQLAlchemy's way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from sqlalchemy import ClauseElement, Connection, Dialect, Engine, exc
from sqlalchemy.engine.result import result_tuple
from sqlalchemy.sql import Select
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import TextualSelect, UpdateBase

Convert = Callable[[Any], Any]
Values = Mapping[str, Any]


class Rows:
    """The rows that a statement has found, with the methods of SQLAlchemy's results that the store uses."""

    def __init__(self, rows: Sequence[Any], rowcount: int) -> None:
        self._rows, self.rowcount = rows, rowcount

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def all(self) -> Sequence[Any]:
        return self._rows

    def first(self) -> Any:
        return self._rows[0] if self._rows else None

    def one(self) -> Any:
        if len(self._rows) != 1:
            raise exc.NoResultFound() if not self._rows else exc.MultipleResultsFound()
        return self._rows[0]

    def one_or_none(self) -> Any:
        return self.one() if self._rows else None

    def scalar(self) -> Any:
        return self._rows[0][0] if self._rows else None

    def scalars(self) -> Rows:
        return Rows([row[0] for row in self._rows], self.rowcount)


class Plan:
    """A statement for one set of parameters: its SQL, and how values are converted on their way in and out."""

    def __init__(self, statement: ClauseElement, compiled: SQLCompiler, dialect: Dialect) -> None:
        self.sql = str(compiled)
        names: Sequence[str] = compiled.positiontup or ()
        self._constants = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
        self._slots = [(name, _bound(compiled, name, dialect)) for name in names]
        columns = list(statement.selected_columns) if isinstance(statement, Select | TextualSelect) else []
        self._row = result_tuple([str(column.key) for column in columns])
        found = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
        self._outward = [(place, convert) for place, convert in enumerate(found) if convert is not None]
        self._dialect = dialect

    def run(self, driver: sqlite3.Connection, given: Values | Sequence[Values]) -> Rows:
        """Raises what SQLAlchemy would."""
        several = [given] if isinstance(given, Mapping) else given
        try:
            bound = [self._inward(values) for values in several]
        except Exception as error:
            raise _as_sqlalchemy(self.sql, error, self._dialect) from error
        try:
            cursor = driver.execute(self.sql, bound[0]) if len(bound) == 1 else driver.executemany(self.sql, bound)
            found = cursor.fetchall() if cursor.description else []
        except sqlite3.Error as error:
            raise _as_sqlalchemy(self.sql, error, self._dialect) from error
        return Rows([self._made(row) for row in found], cursor.rowcount)

    def _inward(self, given: Values) -> list[Any]:
        values: list[Any] = []
        for name, convert in self._slots:
            value = given[name] if name in given else self._constants[name]
            values.append(value if convert is None else convert(value))
        return values

    def _made(self, row: tuple[Any, ...]) -> Any:
        if not self._outward:
            return self._row(row)
        values = list(row)
        for place, convert in self._outward:
            values[place] = convert(values[place])
        return self._row(values)


class SqliteConnection(Connection):
    """A connection for one thread, kept open. Its transactions are begun and ended on the driver."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.driver = cast(sqlite3.Connection, self.connection.driver_connection)

    @contextmanager
    def transaction(self, begin: str) -> Generator[None]:
        """begin: the statement that begins it."""
        try:
            self.driver.execute(begin)
        except sqlite3.Error as error:
            raise _as_sqlalchemy(begin, error, self.dialect) from error
        try:
            yield
            self.driver.commit()
        except BaseException as error:
            with suppress(sqlite3.Error):  # `error` is what went wrong
                self.driver.rollback()
            self.forget()
            if isinstance(error, sqlite3.Error):
                raise _as_sqlalchemy("COMMIT", error, self.dialect) from error
            raise
        self.forget()

    def forget(self) -> None:
        """Ends what SQLAlchemy takes for a transaction, after statements that went its way."""
        if self.in_transaction():
            self.commit()

    def execute(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        """See base class."""
        plan = None if execution_options else _plan(statement, parameters, self.dialect)
        if plan is None:
            return super().execute(statement, parameters, execution_options=execution_options)
        return plan.run(self.driver, parameters or {})

    def scalar(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        """See base class."""
        return self.execute(statement, parameters, execution_options=execution_options).scalar()

    def scalars(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        """See base class."""
        return self.execute(statement, parameters, execution_options=execution_options).scalars()


_plans: Final = WeakKeyDictionary[ClauseElement, dict[tuple[str, ...], Plan | None]]()
"""By statement and the names of its parameters. None: it is for SQLAlchemy."""


def _plan(statement: Any, parameters: Any, dialect: Dialect) -> Plan | None:
    """None for a statement that was never seen before: most of those are built for one use."""
    plans = _plans.get(statement)
    if plans is None:
        _plans[statement] = {}
        return None
    several = isinstance(parameters, list | tuple) and len(cast(Sequence[Values], parameters)) > 0
    names = tuple(cast(Values, parameters[0] if several else parameters or {}))
    if names not in plans:
        plans[names] = _made(statement, names, dialect)
    return plans[names]


def _made(statement: ClauseElement, names: Iterable[str], dialect: Dialect) -> Plan | None:
    if not isinstance(statement, Select | TextualSelect | UpdateBase):
        return None
    compiled = statement.compile(dialect=dialect, column_keys=list(names))
    has_more = compiled.post_compile_params or compiled.effective_returning
    if has_more or compiled.insert_prefetch or compiled.update_prefetch:
        return None
    return Plan(cast(ClauseElement, statement), compiled, dialect)


def _bound(compiled: SQLCompiler, name: str, dialect: Dialect) -> Convert | None:
    return compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect)


def _as_sqlalchemy(sql: str, error: Exception, dialect: Dialect) -> Exception:
    return cast(
        Exception,
        exc.DBAPIError.instance(sql, None, error, sqlite3.Error, hide_parameters=True, dialect=dialect),
    )
