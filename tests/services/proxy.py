"""A TCP proxy on loopback that can lose a network: connections that break, or that silently carry nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """Forwards every connection to one address, unless its network is cut."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._host, self._port = host, int(port)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._refusing = False
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.address = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"

    def swallow(self) -> None:
        """From now on nothing arrives any more, and nobody is told: a lost route, a firewall that forgets."""
        self._flowing.clear()

    def drop(self) -> None:
        """Resets all connections, and every new one."""
        self._refusing = True
        for writer in self._writers:
            writer.transport.abort()

    def heal(self) -> None:
        """The network is back; what was on its way arrives."""
        self._refusing = False
        self._flowing.set()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        there: asyncio.StreamWriter | None = None
        try:
            if self._refusing:
                return
            back, there = await asyncio.open_connection(self._host, self._port)
            self._writers.add(there)
            ways = {asyncio.create_task(self._pump(reader, there)), asyncio.create_task(self._pump(back, writer))}
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass  # the target is down: whoever connected sees a reset, as without a proxy
        finally:
            for end in (writer, there):
                if end is not None:
                    self._writers.discard(end)
                    end.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def open_proxy(target: str) -> AsyncIterator[Proxy]:
    """A proxy for host:port, on a free port."""
    proxy = Proxy(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
