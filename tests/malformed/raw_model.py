"""A model server that answers with bytes: whatever a test wants, HTTP or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from everturn.activities.scripted.wire import BadRequest, read_request


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole HTTP answer, which ends with its connection."""
    named = {"content_type": "text/event-stream", **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1") + body


def event(data: object) -> bytes:
    """One server-sent event; anything but bytes as JSON."""
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return b"data: " + text + b"\n\n"


def chunk(delta: object = None, finish: object = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a chat completion, with fields in place of the usual ones."""
    choice = {"index": 0, "delta": {"content": "word "} if delta is None else delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **fields}


def stream(*chunks: object, done: bool = True) -> bytes:
    """An answer made of these chunks."""
    return http(b"".join(map(event, chunks)) + (b"data: [DONE]\n\n" if done else b""))


class RawModelServer:
    """Answers `case 7` in the newest user message with the seventh answer, again and again."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self._answers = answers
        self._server: asyncio.Server | None = None
        self.base_url = ""
        self.asked: dict[int, int] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader)
            if request is None:
                return
            words = [
                m["content"] for m in json.loads(request.body or b'{"messages": []}')["messages"] if m["role"] == "user"
            ]
            number = int(words[-1].removeprefix("case ")) if words else 0
            self.asked[number] = self.asked.get(number, 0) + 1
            writer.write(self._answers[number])
            await writer.drain()
        except (ConnectionError, BadRequest):
            return  # the client has seen enough
        finally:
            writer.close()
