"""Store addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.errors import BadInput
from everturn.store.address import ACCEPTED, parse_address


def test_sqlite_addresses_name_a_file() -> None:
    assert parse_address("sqlite:///file.db").path == Path("file.db")
    assert parse_address("sqlite:////var/lib/file.db").path == Path("/var/lib/file.db")
    assert parse_address("sqlite:////var/lib/file.db").safe == "sqlite:////var/lib/file.db"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_postgres_addresses_use_psycopg_and_hide_passwords(scheme: str) -> None:
    address = parse_address(f"{scheme}://me:hush@db.example.com:5433/chat?sslmode=require&sslpassword=other")
    assert address.url.drivername == "postgresql+psycopg"
    assert address.safe == "postgresql://me:***@db.example.com:5433/chat?sslmode=require"
    assert address.secrets == ("hush", "other")
    assert "hush" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:hush@host/db",
        "postgresql+asyncpg://me:hush@host/db",
        "sqlite+aiosqlite:///x.db",
        "file.db",
        "",
        "redis://hush",
        "postgresql://me:hush@host:port/db",
        "sqlite://hush/file.db",
        "sqlite:///file.db?cache=shared",
    ],
)
def test_other_addresses_are_refused_with_the_accepted_forms_and_no_password(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_address(url)
    assert ACCEPTED in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file:x?mode=memory"])
def test_in_memory_stores_are_refused_with_the_reason(url: str) -> None:
    with pytest.raises(BadInput, match="cannot be shared"):
        parse_address(url)
