"""The health endpoint of a worker: a few lines of HTTP for the probes of an orchestrator."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

from everturn.errors import BadInput
from everturn.turns import JsonDict
from everturn.worker.vitals import Report

MAX_HEAD_BYTES: Final = 8192
TIMEOUT: Final = 5.0
"""Seconds that a request has to arrive, and its answer to be made and sent."""
MAX_CONNECTIONS: Final = 64
"""More at once are closed without an answer."""
METHODS: Final = ("GET", "HEAD")

logger = logging.getLogger("everturn.worker")

Probe = Callable[[], Awaitable[Report]]


class HealthServer:
    """Serves each probe under its path while inside `async with`; 200 for a good report, 503 for a bad one.

    port: 0 for any that is free. Raises BadInput if the port cannot be had.
    """

    def __init__(self, host: str, port: int, probes: Mapping[str, Probe]) -> None:
        self._host, self._wanted, self._probes = host, port, probes
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """host:port."""
        if self._server is None:
            raise RuntimeError("the health endpoint is not open")
        return f"{self._host}:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._serve, self._host, self._wanted, limit=MAX_HEAD_BYTES)
        except OSError as error:
            raise BadInput(
                f"the health endpoint cannot listen at {self._host}:{self._wanted}: {error.strerror or error}; "
                "set another EVERTURN_HEALTH_PORT or EVERTURN_HEALTH_HOST"
            ) from error
        logger.info("health at http://%s", self.address)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            for writer in self._open:
                writer.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            async with asyncio.timeout(TIMEOUT):
                if len(self._open) <= MAX_CONNECTIONS:
                    await self._exchange(reader, writer)
        except (TimeoutError, OSError):
            logger.debug("a request to the health endpoint was not answered", exc_info=True)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if not error.partial:  # a probe of the port alone
                return
            status, body = _refusal(HTTPStatus.BAD_REQUEST)
            method = ""
        except asyncio.LimitOverrunError:
            status, body = _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            method = ""
        else:
            method, path = _parsed(head)
            status, body = await self._answer(method, path)
        writer.write(_response(status, body, head_only=method == "HEAD"))
        await writer.drain()

    async def _answer(self, method: str, path: str) -> tuple[HTTPStatus, JsonDict]:
        if not method:
            return _refusal(HTTPStatus.BAD_REQUEST)
        if method not in METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        probe = self._probes.get(path)
        if probe is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        try:
            report = await probe()
        except Exception:
            logger.exception("the health probe %s failed", path)
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR)
        return (HTTPStatus.OK if report.good else HTTPStatus.SERVICE_UNAVAILABLE), report.facts


def _parsed(head: bytes) -> tuple[str, str]:
    """Method and path without the query; ("", "") if it is no HTTP."""
    words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return "", ""
    return words[0], words[1].partition("?")[0]


def _refusal(status: HTTPStatus) -> tuple[HTTPStatus, JsonDict]:
    return status, {"error": status.phrase}


def _response(status: HTTPStatus, facts: JsonDict, *, head_only: bool) -> bytes:
    body = json.dumps(facts, ensure_ascii=False).encode(errors="replace") + b"\n"
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    lines += [f"Allow: {', '.join(METHODS)}"] if status == HTTPStatus.METHOD_NOT_ALLOWED else []
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    return head if head_only else head + body
