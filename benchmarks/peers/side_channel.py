"""Tokens from a worker to a client over a loopback socket: how a hand-written Temporal application would stream."""

from __future__ import annotations

import asyncio
import json

from benchmarks.peers.protocol import Tap

_writers: dict[int, asyncio.StreamWriter] = {}


class Receiver:
    """The client's end."""

    def __init__(self) -> None:
        self.taps: dict[str, Tap] = {}
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._receive, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _receive(self, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            turn, piece = json.loads(line)
            if turn in self.taps:
                self.taps[turn].text(piece)


def tap_of(receiver: Receiver, turn: str) -> Tap:
    """A viewer of one turn."""
    return receiver.taps.setdefault(turn, Tap())


async def send(port: int, turn: str, piece: str) -> None:
    """The worker's end; one connection for all turns."""
    writer = _writers.get(port)
    if writer is None or writer.is_closing():
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        _writers[port] = writer
    writer.write(json.dumps([turn, piece]).encode() + b"\n")
