"""HTTP/1.1 and SSE by hand: every byte, pause and reset of an answer is under the script's control."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from everturn.activities.scripted.log import LogRecord
from everturn.turns import JsonDict

MAX_BODY_BYTES = 64 * 1024 * 1024


class BadRequest(Exception):
    """The bytes that arrived are not an HTTP/1.1 request that this server can read."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request as read. headers: lower-case names."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """The next request of a connection, None when the client has closed it. Raises BadRequest."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = _parse_head(head)
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= MAX_BODY_BYTES:
            raise BadRequest(f"content-length {length} is outside 0 to {MAX_BODY_BYTES}")
        body = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except (asyncio.LimitOverrunError, ValueError) as error:
        raise BadRequest(f"the request cannot be read: {error}") from error
    url = urlsplit(target)
    return HttpRequest(method, url.path, dict(parse_qsl(url.query)), headers, body)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _version = first.split(" ", 2)
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return method, target, headers


class Exchange:
    """The answer to one request while it is written. Each `write` is its own HTTP chunk and its own TCP write."""

    def __init__(self, writer: asyncio.StreamWriter, record: LogRecord | None = None) -> None:
        self._writer, self._record = writer, record
        self.opened = False
        self.broken = False
        """The connection was ended by the script; nothing more can be written."""

    async def reply(
        self, status: int, body: JsonDict | list[JsonDict], headers: Mapping[str, str] | None = None
    ) -> None:
        """Writes a whole JSON answer."""
        data = json.dumps(body, ensure_ascii=False).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})})
        self._writer.write(data)
        await self._writer.drain()
        self._complete()

    async def open(self) -> None:
        """Sends the head of an event stream, once."""
        if self.opened:
            return
        self.opened = True
        self._head(200, {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"})
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        await self.open()
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        """Ends the stream as HTTP wants it."""
        await self.open()
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        self._complete()

    def reset(self) -> None:
        """Ends the connection with a TCP reset."""
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.broken = True
        self._writer.transport.abort()

    def hang_up(self) -> None:
        """Closes the connection in the middle of the answer: a FIN, without the end that HTTP wants."""
        self.broken = True
        self._writer.close()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} {_phrase(status)}", *(f"{name}: {value}" for name, value in headers.items())]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if self._record is not None:
            self._record.status, self._record.t_first_byte = status, time.time()

    def _complete(self) -> None:
        if self._record is not None:
            self._record.complete = True


def sse(data: str, event: str | None = None, newline: str = "\n") -> bytes:
    """One server-sent event."""
    name = f"event: {event}{newline}" if event else ""
    return f"{name}data: {data}{newline}{newline}".encode()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:  # 529 and friends have no standard phrase
        return "Unknown"
