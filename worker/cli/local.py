"""A whole Everturn on this machine: a Temporal server, a worker in a process of its own, and a store."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from everturn.errors import Unavailable
from everturn.store.store import Store
from everturn.worker.child import end_child, spawn_child
from everturn.worker.cli.options import Places
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions

WORKER_PATIENCE = 35.0  # a worker lets running steps go on for up to 30 seconds
LAST_LOG_LINES = 12


class LocalSystem:
    """Alive inside `async with`. The worker runs apart so that loading models never holds up the terminal.

    server: how to run Temporal. worker: the arguments of `everturn worker`. folder: for the store and the worker's log.
    environment: variables that the worker gets beside this process's own.
    """

    def __init__(
        self,
        server: ServerOptions,
        worker: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._server = EmbeddedServer(server)
        self._worker_arguments = list(worker)
        self._folder = folder
        self._environment = dict(environment or {})
        self._worker: asyncio.subprocess.Process | None = None

    @property
    def server(self) -> EmbeddedServer:
        return self._server

    @property
    def places(self) -> Places:
        """Where clients find this system."""
        return Places(
            target=self._server.address,
            namespace=self._server.options.namespace,
            web_ui=self._server.web_ui,
            store=f"sqlite:///{self._store_file}",
        )

    @property
    def _store_file(self) -> Path:
        return self._folder.resolve() / "everturn.db"

    @property
    def worker_log(self) -> Path:
        return self._folder / "worker.log"

    async def __aenter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        await self._server.start()
        try:
            await self._make_store()
            self._worker = await self._start_worker()
        except BaseException:
            await self._server.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._worker is not None:
                await end_child(self._worker, WORKER_PATIENCE, "the worker")
        finally:
            await self._server.stop()

    async def worker_ended(self) -> NoReturn:
        """Waits for the worker's end, which nobody asked for, and raises Unavailable with its last words."""
        if self._worker is None:
            raise Unavailable("the worker is not running; enter the system first")
        code = await self._worker.wait()
        lines = self.worker_log.read_text(errors="replace").splitlines()[-LAST_LOG_LINES:]
        raise Unavailable(f"the worker ended by itself (exit code {code}); its last words: " + "\n".join(lines))

    async def _make_store(self) -> None:
        store = await Store.open(f"sqlite:///{self._store_file}", create=True)
        await store.close()

    async def _start_worker(self) -> asyncio.subprocess.Process:
        with self.worker_log.open("wb") as output:
            return await spawn_child(
                sys.executable,
                ["-m", "everturn.worker", "worker", *self._worker_arguments],
                output=output,
                environment={**os.environ, **self._environment, **self.places.environment},
            )
