"""Column types: times in UTC, text that any database accepts, JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

from sqlalchemy import JSON, DateTime, Dialect, Row, Text
from sqlalchemy.types import TypeDecorator

from everturn.store.encoding import clean_text

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
"""A row whose columns are known by name."""


class UtcTime(TypeDecorator[datetime]):
    """A point in time: `timestamptz` on PostgreSQL, text in UTC without an offset on SQLite; aware in Python."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class CleanText(TypeDecorator[str]):
    """Text from models, tools and providers: what databases refuse in it is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else clean_text(value)


def json_type() -> JSON:
    """The plain JSON type; None is SQL's NULL."""
    return JSON(none_as_null=True)


def now() -> datetime:
    return datetime.now(UTC)


def from_epoch(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def iso(value: Any) -> str | None:
    """A stored time as ISO 8601 in UTC."""
    return value.isoformat() if isinstance(value, datetime) else None
