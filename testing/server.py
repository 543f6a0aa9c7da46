"""One Temporal server per process, shared by all tests, whichever event loop each of them runs on."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import threading
from functools import cache
from typing import Final

from temporalio.client import Client

from everturn.worker.server import STOP_TIMEOUT, EmbeddedServer
from everturn.worker.server_command import ServerOptions

ELSEWHERE: Final = "EVERTURN_TEST_TEMPORAL"
"""host:port of a running Temporal server to test against, instead of starting one."""


class ServerThread:
    """An embedded server in a thread with a loop of its own: it outlives the loops of single tests."""

    def __init__(self, options: ServerOptions) -> None:
        self._server = EmbeddedServer(options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="everturn-temporal", daemon=True)

    @property
    def address(self) -> str:
        return self._server.address

    def start(self) -> None:
        """Returns when the server answers; raises ServerFailed."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the server, its loop and its thread."""
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(STOP_TIMEOUT * 2)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_TIMEOUT)
        self._loop.close()


async def connect() -> Client:
    """A client of the process's server, which starts with the first call. Raises ServerFailed."""
    address = os.environ.get(ELSEWHERE, "")
    if not address:
        address = await asyncio.to_thread(_address)
    return await Client.connect(address)


_starting = threading.Lock()


def _address() -> str:
    with _starting:
        return _started_server().address


@cache
def _started_server() -> ServerThread:
    server = ServerThread(ServerOptions(state_file=None, ui=False))
    server.start()
    atexit.register(_stop, server)
    return server


def _stop(server: ServerThread) -> None:
    gc.collect()  # clients that nobody holds any more close their connections before the server goes
    server.stop()
