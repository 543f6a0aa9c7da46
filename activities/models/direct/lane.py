"""The fast lane: chat completions of OpenAI's format over HTTP, without litellm in between."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from everturn.activities.models.direct.body import needs_litellm, request_body, request_headers, request_url
from everturn.activities.models.direct.chunks import delta_of_chunk, parse_chunk, with_price
from everturn.activities.models.direct.endpoints import Endpoint, endpoint_of
from everturn.activities.models.direct.sse import EventReader
from everturn.activities.models.failures import failure_from, failure_of_answer, missing_key
from everturn.activities.models.prices import cost_of
from everturn.activities.models.types import Delta, ModelLane, ModelRequest

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

CONNECT_SECONDS: Final = 10.0
"""For the TCP connection; a host that is there answers within one second."""
END_SECONDS: Final = 0.05
"""After the last event, for the end of the HTTP answer: only then can the next call use the connection."""
MAX_ERROR_BYTES: Final = 64 * 1024
_DONE: Final = b"[DONE]"


class OpenAILane:
    """One HTTP request per call, no retries, the connection closed as soon as nobody reads.

    litellm: the lane for whatever cannot be asked directly: other providers, and single requests that need a
    translation. everything: an endpoint for all models, which then never go through litellm. Connections are pooled;
    the lane belongs to the loop that first uses it, until `close`.
    """

    def __init__(self, litellm: ModelLane, everything: Endpoint | None = None) -> None:
        self._litellm, self._everything = litellm, everything
        self._session: ClientSession | None = None

    async def warm_up(self) -> None:
        """Imports the HTTP client in a thread."""
        await asyncio.to_thread(self.preload)

    def preload(self) -> None:
        """Imports the HTTP client."""
        __import__("aiohttp")

    async def close(self) -> None:
        """Closes the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The model's answer. Raises ModelFailure."""
        if self._everything is not None:
            return self._ask(request, self._everything)
        endpoint = endpoint_of(request.model, request.api_base)
        if endpoint is None or needs_litellm(request, endpoint):
            return self._litellm.stream(request)
        return self._ask(request, endpoint)

    async def _ask(self, request: ModelRequest, endpoint: Endpoint) -> AsyncGenerator[Delta, None]:
        if endpoint.needs_key and not request.api_key:
            raise missing_key(request.model, request.key_env)
        response: ClientResponse | None = None
        try:
            response = await self._post(request, endpoint)
            await _check(response, request)
            answer = _Answer(request, endpoint)
            async for piece in response.content.iter_any():
                for delta in answer.feed(piece):
                    yield delta
                if answer.done:
                    await _await_end(response)
                    break
            for delta in answer.finish():
                yield delta
        except Exception as error:
            begun, secrets = response is not None, _secrets(request)
            raise failure_from(
                error, request.model, key_env=request.key_env, in_stream=begun, secrets=secrets
            ) from None
        finally:
            if response is not None:
                response.close()

    async def _post(self, request: ModelRequest, endpoint: Endpoint) -> ClientResponse:
        from aiohttp import ClientTimeout

        return await self._client().post(
            request_url(endpoint.address(request.api_base) or ""),
            data=io.BytesIO(request_body(request, endpoint)),  # in pieces: a large prompt must not hold up the others
            headers=request_headers(request),
            allow_redirects=False,  # neither the key nor the conversation goes where nobody has sent it
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=request.read_timeout),
        )

    def _client(self) -> ClientSession:
        from aiohttp import ClientSession, DummyCookieJar, TCPConnector

        if self._session is None:
            # no limit of connections: how many calls run at once is the worker's decision
            self._session = ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar(), trust_env=True)
        return self._session


class _Answer:
    """Bytes of one answer in, deltas out."""

    def __init__(self, request: ModelRequest, endpoint: Endpoint) -> None:
        self._request, self._endpoint = request, endpoint
        self._events = EventReader()
        self.done = False
        """The server has said that nothing more will come."""

    def feed(self, piece: bytes) -> Iterator[Delta]:
        return self._deltas(self._events.feed(piece))

    def finish(self) -> Iterator[Delta]:
        """What the end of the stream completes."""
        return iter(()) if self.done else self._deltas(self._events.finish())

    def _deltas(self, events: list[tuple[bytes, bytes]]) -> Iterator[Delta]:
        for name, data in events:
            if data == _DONE:
                self.done = True
                return
            chunk = parse_chunk(name, data)
            delta = delta_of_chunk(chunk)
            if delta.usage:
                delta = with_price(delta, chunk) if self._endpoint.prices_calls else self._priced(delta)
            yield delta

    def _priced(self, delta: Delta) -> Delta:
        if delta.usage is None:
            return delta
        cost = cost_of(delta.usage, self._request.model, delta.model)
        return replace(delta, usage=replace(delta.usage, cost=cost))


async def _check(response: ClientResponse, request: ModelRequest) -> None:
    """Raises the ModelFailure that an answer with an error status stands for."""
    from aiohttp import ClientError

    if response.status < 300:
        return
    body = bytearray()
    with contextlib.suppress(ClientError):  # the status says what happened, also when the text breaks off
        async for piece in response.content.iter_any():
            body += piece
            if len(body) >= MAX_ERROR_BYTES:
                break
    raise failure_of_answer(
        response.status,
        dict(response.headers),
        body[:MAX_ERROR_BYTES].decode(errors="replace"),
        request.model,
        key_env=request.key_env,
        secrets=_secrets(request),
    )


async def _await_end(response: ClientResponse) -> None:
    """Reads to the end of the HTTP answer, which frees its connection for the next call; gives up soon."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            async for _ in response.content.iter_any():
                pass


def _secrets(request: ModelRequest) -> list[str | None]:
    return [request.api_key, *request.headers.values()]
