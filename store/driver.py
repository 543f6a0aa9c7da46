"""Statements without SQLAlchemy's execution, which takes longer than the driver and SQLite itself.

The statements stay SQLAlchemy's: one that is a constant of a module is compiled once, with its types' conversions, and
then runs on the driver. All others go SQLAlchemy's way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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
        self._positional = compiled.positional
        names: Sequence[str] = (compiled.positiontup or ()) if self._positional else list(compiled.bind_names.values())
        self._constants = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
        self._slots = [(name, _bound(compiled, name, dialect)) for name in names]
        columns = list(statement.selected_columns) if isinstance(statement, Select | TextualSelect) else []
        self._row = result_tuple([str(column.key) for column in columns])
        self._types = [column.type.dialect_impl(dialect) for column in columns]
        self._outward: list[tuple[int, Convert]] | None = None
        self._dialect = dialect

    def run(self, driver: Any, given: Values | Sequence[Values]) -> Rows:
        """Raises what SQLAlchemy would. driver: the driver's own connection."""
        several = [given] if isinstance(given, Mapping) else given
        try:
            bound = [self._inward(values) for values in several]
        except Exception as error:
            raise as_sqlalchemy(self.sql, error, self._dialect, driver) from error
        try:
            cursor = driver.cursor()
            if len(bound) == 1:
                cursor.execute(self.sql, bound[0])
            else:
                cursor.executemany(self.sql, bound)
            found = cursor.fetchall() if cursor.description else []
        except self._dialect.loaded_dbapi.Error as error:
            raise as_sqlalchemy(self.sql, error, self._dialect, driver) from error
        if self._outward is None and cursor.description:
            self._outward = self._conversions(cursor.description)
        return Rows([self._made(row) for row in found], cursor.rowcount)

    def _conversions(self, description: Sequence[Sequence[Any]]) -> list[tuple[int, Convert]]:
        """Some depend on what the database calls the type of its result."""
        found = [
            kind.result_processor(self._dialect, told[1]) for kind, told in zip(self._types, description, strict=True)
        ]
        return [(place, convert) for place, convert in enumerate(found) if convert is not None]

    def _inward(self, given: Values) -> Sequence[Any] | Values:
        values: list[Any] = []
        for name, convert in self._slots:
            value = given[name] if name in given else self._constants[name]
            values.append(value if convert is None else convert(value))
        if self._positional:  # a name may have several places
            return values
        return {name: value for (name, _), value in zip(self._slots, values, strict=True)}

    def _made(self, row: tuple[Any, ...]) -> Any:
        if not self._outward:
            return self._row(row)
        values = list(row)
        for place, convert in self._outward:
            values[place] = convert(values[place])
        return self._row(values)


class DriverConnection(Connection, ABC):
    """A connection for one thread, kept open. Its transactions are begun and ended on the driver."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.driver: Any = self.connection.driver_connection

    @abstractmethod
    def begin_on_driver(self, *, write: bool) -> None:
        """Begins a transaction, if the driver does not do so by itself."""

    @contextmanager
    def transaction(self, *, write: bool) -> Generator[None]:
        """write: it may write. Raises what SQLAlchemy would."""
        errors = self.dialect.loaded_dbapi.Error
        try:
            self.begin_on_driver(write=write)
        except errors as error:
            raise as_sqlalchemy("BEGIN", error, self.dialect, self.driver) from error
        try:
            yield
            self.driver.commit()
        except BaseException as error:
            with suppress(errors, exc.DBAPIError):  # `error` is what went wrong
                self.driver.rollback()
                if self.in_transaction():
                    self.rollback()
            if isinstance(error, errors):
                raise as_sqlalchemy("COMMIT", error, self.dialect, self.driver) from error
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


class SqliteConnection(DriverConnection):
    """To an engine whose driver begins nothing by itself."""

    def begin_on_driver(self, *, write: bool) -> None:
        """See base class. One that writes takes the write lock at once."""
        self.driver.execute("BEGIN IMMEDIATE" if write else "BEGIN")


class PostgresConnection(DriverConnection):
    """A read is one statement, or several about facts that do not change: no transaction, no round trips for it."""

    def begin_on_driver(self, *, write: bool) -> None:
        """See base class."""
        self.driver.autocommit = not write

    def close(self) -> None:
        """See base class. The driver's connection ends, too: SQLAlchemy does not know that it commits by itself."""
        self.invalidate()
        super().close()


_plans: Final = WeakKeyDictionary[ClauseElement, dict[tuple[str, ...], Plan | None]]()
"""By statement, and by the database's and its parameters' names. None: it is for SQLAlchemy."""


def _plan(statement: Any, parameters: Any, dialect: Dialect) -> Plan | None:
    """None for a statement that was never seen before: most of those are built for one use."""
    plans = _plans.get(statement)
    if plans is None:
        _plans[statement] = {}
        return None
    several = isinstance(parameters, list | tuple) and len(cast(Sequence[Values], parameters)) > 0
    names = tuple(cast(Values, parameters[0] if several else parameters or {}))
    key = (dialect.name, *names)
    if key not in plans:
        plans[key] = _made(statement, names, dialect)
    return plans[key]


def _made(statement: ClauseElement, names: Iterable[str], dialect: Dialect) -> Plan | None:
    if not isinstance(statement, Select | TextualSelect | UpdateBase):
        return None
    compiled = statement.compile(dialect=dialect, column_keys=list(names))
    has_more = compiled.post_compile_params or compiled.effective_returning or compiled.escaped_bind_names
    if has_more or compiled.insert_prefetch or compiled.update_prefetch:
        return None
    return Plan(cast(ClauseElement, statement), compiled, dialect)


def _bound(compiled: SQLCompiler, name: str, dialect: Dialect) -> Convert | None:
    return compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect)


def as_sqlalchemy(sql: str, error: Exception, dialect: Dialect, driver: Any) -> Exception:
    """The error that SQLAlchemy would raise for a driver's."""
    kind = dialect.loaded_dbapi.Error
    lost = isinstance(error, kind) and dialect.is_disconnect(cast(Any, error), driver, None)
    made = exc.DBAPIError.instance(
        sql, None, error, kind, hide_parameters=True, connection_invalidated=lost, dialect=dialect
    )
    return cast(Exception, made)
