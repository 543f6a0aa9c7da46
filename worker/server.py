"""The embedded Temporal server: the real `temporal` binary as a child, for one machine and for tests."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from everturn.errors import ServerFailed
from everturn.search_attributes import missing_search_attributes
from everturn.worker.child import end_child, spawn_child
from everturn.worker.ports import LOOPBACK, PortWish, Preferred, choose_port
from everturn.worker.search_attributes import add_search_attributes
from everturn.worker.server_command import ServerOptions, find_binary, server_arguments
from everturn.worker.state_lock import lock_state, sign_lock

log = logging.getLogger(__name__)

STOP_TIMEOUT = 10.0  # an orderly stop takes about 1.4 seconds
PROBE_INTERVAL = 0.05
PROBE_TIMEOUT = timedelta(seconds=2)
PORT_RACES = 3  # a port that was free a moment ago may be taken when the server asks for it
LAST_LOG_LINES = 12
UI_PORT_OFFSET = 1000


class EmbeddedServer:
    """One Temporal server, alive between `start` and `stop` or in `async with`; it never outlives this process.

    Start it from a thread that lives on, usually the main one: Linux ends the child with the thread that made it.
    notes: sentences for the user, for instance that a preferred port was taken.
    """

    def __init__(self, options: ServerOptions | None = None) -> None:
        self.options = options or ServerOptions()
        self.notes: list[str] = []
        self.log_file: Path | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._port = 0
        self._ui_port: int | None = None

    @property
    def address(self) -> str:
        """host:port for clients and workers."""
        return f"{LOOPBACK}:{self._port}"

    @property
    def web_ui(self) -> str | None:
        """Address of the Web UI, None if it is off."""
        return None if self._ui_port is None else f"http://{LOOPBACK}:{self._ui_port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Returns when the server's namespace answers and has our search attributes; raises ServerFailed."""
        if self._process is not None:
            raise ServerFailed(f"this server runs already at {self.address}; make another EmbeddedServer")
        binary = find_binary()
        log_file = self.log_file = self._make_log_file()
        try:
            await self._start(binary, log_file)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Ends the server: orderly, and by force after ten seconds. Safe to repeat."""
        process, self._process = self._process, None
        if process is not None:
            await end_child(process, STOP_TIMEOUT, "the Temporal server")
        if self.log_file is not None and self._log_is_temporary:
            self.log_file.unlink(missing_ok=True)
            self.log_file = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise ServerFailed("the Temporal server is not running; start it first")
        return self._process.pid

    async def wait(self) -> int:
        """Waits until the server ends by itself, and returns its exit code."""
        if self._process is None:
            raise ServerFailed("the server is not running; start it first")
        return await self._process.wait()

    @property
    def _log_is_temporary(self) -> bool:
        return self.options.log_file is None and self.options.state_file is None

    def _make_log_file(self) -> Path:
        if self._log_is_temporary:
            handle, name = tempfile.mkstemp(prefix="everturn-temporal-", suffix=".log")
            os.close(handle)
            return Path(name)
        state = self.options.state_file
        chosen = self.options.log_file or (state.with_suffix(".log") if state else Path("temporal.log"))
        chosen.parent.mkdir(parents=True, exist_ok=True)
        return chosen

    async def _start(self, binary: str, log_file: Path) -> None:
        for race in range(1, PORT_RACES + 1):
            self._choose_ports()
            self._process = await self._spawn(binary, log_file)
            if await self._ready(self._process, log_file):
                return
            log.info("a port of the Temporal server was taken while it started (try %d)", race)
        raise ServerFailed(f"the ports of the Temporal server were taken {PORT_RACES} times; start it again")

    def _choose_ports(self) -> None:
        options = self.options
        self.notes.clear()
        self._port = self._choose(options.port, "Temporal")
        # Where nothing else is wished, tools look for the Web UI 1,000 above the server's port.
        usual = Preferred(self._port + UI_PORT_OFFSET)
        if not options.ui:
            self._ui_port = None
        elif options.ui_port is None:
            self._ui_port = choose_port(usual, "the Temporal Web UI")
        else:
            self._ui_port = self._choose(options.ui_port, "the Temporal Web UI")

    def _choose(self, wish: PortWish, what: str) -> int:
        port = choose_port(wish, what)
        if isinstance(wish, Preferred) and port != wish.port:
            self.notes.append(f"port {wish.port} is in use; {what} is on port {port}")
        return port

    async def _spawn(self, binary: str, log_file: Path) -> asyncio.subprocess.Process:
        state = self.options.state_file
        lock = None if state is None else await lock_state(state)
        try:
            with log_file.open("ab") as output:
                process = await spawn_child(
                    binary,
                    server_arguments(self.options, self._port, self._ui_port),
                    output=output,
                    pass_fds=() if lock is None else (lock,),
                )
            if lock is not None:
                sign_lock(lock, f"process {process.pid} at {self.address}")
            return process
        finally:
            if lock is not None:
                os.close(lock)

    async def _ready(self, process: asyncio.subprocess.Process, log_file: Path) -> bool:
        """True when the server can be used, False when it lost its port to another program; raises ServerFailed."""
        probing = asyncio.create_task(_probe(self.address, self.options.namespace))
        ending = asyncio.create_task(process.wait())
        timeout = self.options.start_timeout
        await asyncio.wait((probing, ending), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        try:
            if probing.done():
                probing.result()
                return True
            tail = _tail(log_file)
            if not ending.done():
                raise ServerFailed(
                    f"the Temporal server did not answer within {timeout:g} s; its log ends with: {tail}"
                )
            if "address already in use" in tail:
                return False
            raise ServerFailed(
                f"the Temporal server ended while it started (exit code {ending.result()}); its log ends with: {tail}"
            )
        finally:
            probing.cancel()
            ending.cancel()
            await asyncio.gather(probing, ending, return_exceptions=True)


async def _probe(address: str, namespace: str) -> None:
    request = DescribeNamespaceRequest(namespace=namespace)
    while True:
        try:
            client = await Client.connect(address, namespace=namespace)
            await client.workflow_service.describe_namespace(request, timeout=PROBE_TIMEOUT)
            # The server's own flag covers a namespace that it creates, not one from an older state file.
            if missing := await missing_search_attributes(client):
                await add_search_attributes(client, missing)
        except (RPCError, RuntimeError) as error:  # RuntimeError: the SDK found nobody listening
            log.debug("the Temporal server at %s does not answer yet: %s", address, error)
            await asyncio.sleep(PROBE_INTERVAL)
        else:
            return


def _tail(log_file: Path) -> str:
    lines = log_file.read_text(errors="replace").splitlines()
    return "\n".join(lines[-LAST_LOG_LINES:]) or "(empty)"
