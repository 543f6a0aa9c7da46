"""`python -m benchmarks.model.server`: the model server; prints its address.

POST /v1/chat/completions and /v1/responses; GET /seen/TURN lists a turn's requests and when each token was written.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable
from typing import Final

from aiohttp import web

from benchmarks.model.chat import ChatWriter
from benchmarks.model.reading import Ask, read_chat, read_response
from benchmarks.model.responses import ResponseWriter
from benchmarks.model.seen import Asked, Seen

_BODY_LIMIT: Final = 64 << 20
Writer = ChatWriter | ResponseWriter


class ModelServer:
    """The routes."""

    def __init__(self) -> None:
        self._seen = Seen()

    def application(self) -> web.Application:
        application = web.Application(client_max_size=_BODY_LIMIT)
        application.router.add_post("/v1/chat/completions", self._chat)
        application.router.add_post("/v1/responses", self._responses)
        application.router.add_get("/seen/{turn}", self._report)
        return application

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, read_chat, ChatWriter)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, read_response, ResponseWriter)

    async def _report(self, request: web.Request) -> web.Response:
        return web.json_response(self._seen.of(request.match_info["turn"]))

    async def _answer(
        self, request: web.Request, read: Callable[[bytes], Ask], make: Callable[[Ask], Writer]
    ) -> web.StreamResponse:
        ask = read(await request.read())
        asked = self._seen.note(ask.script.turn, ask.results, ask.bytes_in)
        writer = make(ask)
        if not ask.streamed:
            asked.done = time.time()
            return web.json_response(writer.whole())
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
        await response.prepare(request)
        await _write(response, ask, asked, writer)
        asked.done = time.time()
        return response


async def _write(response: web.StreamResponse, ask: Ask, asked: Asked, writer: Writer) -> None:
    if ask.calls_tool:
        await response.write(writer.begin() + writer.call() + writer.end())
        return
    words = ask.script.words
    if not ask.script.gap_ms:
        asked.written = [time.time()] * len(words)
        await response.write(writer.begin() + b"".join(writer.token(word) for word in words) + writer.end())
        return
    await response.write(writer.begin())
    began = time.monotonic()
    for number, word in enumerate(words):
        due = began + number * ask.script.gap_ms / 1000
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked.written.append(time.time())
        await response.write(writer.token(word))
    await response.write(writer.end())


async def main() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner = web.AppRunner(ModelServer().application(), access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(f"http://{host}:{port}/v1\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
