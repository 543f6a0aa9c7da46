"""The scripted model server: OpenAI's chat completions and Anthropic's messages on a loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Self

from everturn.activities.scripted.ask import Ask, BadScript, anthropic_ask, openai_ask, read_body
from everturn.activities.scripted.log import CALLER_HEADER, Attempts, LogRecord, RequestLog, visible_headers
from everturn.activities.scripted.moves import Fail, Move
from everturn.activities.scripted.player import StreamPlayer, dialect_of, play_whole
from everturn.activities.scripted.scenarios import script_moves
from everturn.activities.scripted.wire import BadRequest, Exchange, HttpRequest, read_request

STOP_SECONDS = 5.0
"""How long `stop` waits for open answers to end after they were cancelled; they only have to unwind."""
_LOG_SIZE = 5_000
_HEAD_BYTES = 256 * 1024


class ScriptedModelServer:
    """Answers as the model's name, or a directive in the user message, says.

    Names: `text:tokens=20,delay_ms=5` (a scenario and parameters, values percent-encoded), several joined by `|`, one
    per step of a turn; `scripted`, which looks for `[[text tokens=20]]` in the newest user message that has one; `demo`
    and `demo-fast`. Any other name gives 404. `GET /log?model=…&contains=…&since=…` lists the requests as JSON.

    play: another way from a request to the moves of its answer.
    """

    def __init__(self, log_size: int = _LOG_SIZE, play: Callable[[Ask], Iterable[Move]] = script_moves) -> None:
        self._moves = play
        self._log = RequestLog(log_size)
        self._attempts = Attempts()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._origin = ""

    @property
    def base_url(self) -> str:
        """Address of the API, `/v1` included. Raises RuntimeError before `start`."""
        return f"{self.origin}/v1"

    @property
    def origin(self) -> str:
        """Address without a path, as Anthropic clients want it. Raises RuntimeError before `start`."""
        if not self._origin:
            raise RuntimeError("the scripted model server is not running; await start() first")
        return self._origin

    @property
    def requests(self) -> list[LogRecord]:
        """All model requests so far, oldest first."""
        return self._log.find()

    def find(
        self, model: str | None = None, contains: str | None = None, since: float | None = None
    ) -> list[LogRecord]:
        """The requests of one model, or whose body contains a text, or from a time on (seconds since the epoch)."""
        return self._log.find(model, contains, since)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> Self:
        """Listens; port 0 takes a free one. Raises OSError if the port is taken, RuntimeError if it runs already."""
        if self._server is not None:
            raise RuntimeError(f"the scripted model server runs already at {self._origin}")
        self._server = await asyncio.start_server(self._accept, host, port, limit=_HEAD_BYTES)
        bound = self._server.sockets[0].getsockname()
        self._origin = f"http://{bound[0]}:{bound[1]}"
        return self

    async def stop(self) -> None:
        """Closes the port and every connection, in at most STOP_SECONDS."""
        server, self._server, self._origin = self._server, None, ""
        if server is None:
            return
        server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=STOP_SECONDS)
        await asyncio.wait_for(server.wait_closed(), STOP_SECONDS)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection; awaits the next request while it answers one, so a client's close is seen at once."""
        upcoming = asyncio.create_task(read_request(reader))
        try:
            while (request := await upcoming) is not None:
                upcoming = asyncio.create_task(read_request(reader))
                if not await self._answer(request, writer, upcoming):
                    return
        except BadRequest as error:
            with contextlib.suppress(ConnectionError):
                await Exchange(writer).reply(400, {"error": {"message": str(error)}})
        except asyncio.CancelledError:
            pass  # only `stop` cancels connections, and waits for them
        finally:
            upcoming.cancel()
            writer.transport.abort() if self._server is None else writer.close()

    async def _answer(
        self, request: HttpRequest, writer: asyncio.StreamWriter, upcoming: asyncio.Task[HttpRequest | None]
    ) -> bool:
        """Answers one request; False when the connection cannot be used any further."""
        if request.path == "/log" and request.method == "GET":
            await self._show_log(request, Exchange(writer))
            return True
        record = LogRecord("", request.path, {}, visible_headers(request.headers))
        exchange = Exchange(writer, record)
        work = asyncio.create_task(self._respond(request, record, exchange))
        try:
            await asyncio.wait({work, upcoming}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and upcoming.exception() is None and upcoming.result() is None:
                record.client_closed = True
                return False
            await work
        except ConnectionError:
            record.client_closed = not exchange.broken
            return False
        finally:
            work.cancel()
            record.t_closed = time.time()
        return not exchange.broken

    async def _show_log(self, request: HttpRequest, exchange: Exchange) -> None:
        since = request.query.get("since")
        found = self.find(request.query.get("model"), request.query.get("contains"), float(since) if since else None)
        await exchange.reply(200, [record.as_json() for record in found])

    async def _respond(self, request: HttpRequest, record: LogRecord, exchange: Exchange) -> None:
        readers = {"/v1/chat/completions": openai_ask, "/v1/messages": anthropic_ask}
        read = readers.get(request.path)
        if read is None or request.method != "POST":
            message = f"no route {request.method} {request.path}; use POST with one of {', '.join(readers)}"
            await exchange.reply(404, {"error": {"message": message, "type": "invalid_request_error", "code": None}})
            return
        try:
            ask = read(read_body(request.body), _key(request))
        except BadScript as error:
            await exchange.reply(400, {"error": {"message": str(error), "type": "invalid_request_error", "code": None}})
            return
        caller = request.headers.get(CALLER_HEADER, "")
        ask = replace(ask, attempt=self._attempts.next(ask.model, ask.body), caller=caller)
        record.model, record.body, record.attempt = ask.model, ask.body, ask.attempt
        self._log.add(record)
        await self._play(ask, exchange)

    async def _play(self, ask: Ask, exchange: Exchange) -> None:
        try:
            moves = self._moves(ask)
        except BadScript as error:
            message = f"The model `{ask.model}` does not exist: {error}"
            moves = [Fail(404, message, "invalid_request_error", "model_not_found")]
        if ask.api == "openai" and not ask.body.get("stream"):
            await play_whole(exchange, ask, moves)
        else:
            await StreamPlayer(exchange, dialect_of(ask)).play(moves)


def _key(request: HttpRequest) -> str:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    return bearer or request.headers.get("x-api-key", "")
