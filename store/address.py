"""Store addresses: which are accepted, and how they are shown without their secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from everturn.errors import BadInput

ACCEPTED: Final = "sqlite:///file.db, sqlite:////absolute/file.db, or postgresql://user:password@host:5432/database"
_POSTGRES: Final = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is. safe: the address for people, without passwords. path: the file of a SQLite store."""

    url: URL = field(repr=False)
    safe: str
    path: Path | None = None

    @property
    def is_sqlite(self) -> bool:
        return self.path is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        given = [self.url.password] if self.url.password else []
        given += [str(value) for key, value in self.url.query.items() if _is_secret(key)]
        return tuple(secret for secret in given if secret)


def parse_address(url: str) -> Address:
    """The address that `url` names; raises BadInput, without repeating a password, for any other form."""
    scheme = url.partition(":")[0] if "://" in url else ""
    if scheme not in ("sqlite", *_POSTGRES):
        shown = f"starts with {scheme!r}" if scheme else "has no scheme"
        raise BadInput(f"the store address {shown}; use {ACCEPTED}")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadInput(f"the store address ({scheme}://…) cannot be read; use {ACCEPTED}") from None
    return _sqlite(parsed) if scheme == "sqlite" else _postgres(parsed)


def _sqlite(url: URL) -> Address:
    name = url.database or ""
    if not name or name.startswith((":memory:", "file:")) or "mode=memory" in str(url.query):
        raise BadInput(
            "an in-memory SQLite store cannot be shared by workers and clients and loses every turn at exit; "
            "use a file: sqlite:///everturn.db"
        )
    if url.host or url.username or url.query:
        raise BadInput(f"a SQLite store address has three or four slashes, a path and nothing else; use {ACCEPTED}")
    return Address(URL.create("sqlite", database=name), f"sqlite:///{name}", Path(name))


def _postgres(url: URL) -> Address:
    shown = url.set(drivername="postgresql", query={k: v for k, v in url.query.items() if not _is_secret(k)})
    return Address(url.set(drivername="postgresql+psycopg"), shown.render_as_string(hide_password=True))


def _is_secret(key: str) -> bool:
    return "password" in key.lower()
