"""The HTTP requests of turn code, made by the worker on its behalf, within the hook's outbound rules."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urljoin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from everturn.hooks.code.outbound import NotAllowed, Outbound
from everturn.turns import JsonDict

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from aiohttp.abc import AbstractResolver, ResolveResult

MAX_BODY_BYTES: Final = 1024 * 1024
"""Of one response; a longer one fails, as half a document misleads."""
MAX_REDIRECTS: Final = 5
MAX_TIMEOUT: Final = 30.0
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
FOLLOWING: Final = frozenset({"GET", "HEAD"})
"""Methods that may be sent again, to where a redirect leads."""
OWN_HEADERS: Final = frozenset({"host", "connection", "content-length", "transfer-encoding", "upgrade"})
"""They say where a request goes and where it ends, so the code does not set them."""


class Request(BaseModel):
    """What the code asked for. timeout: seconds."""

    model_config = ConfigDict(frozen=True)

    url: str
    method: str = "GET"
    headers: dict[str, str] = Field(default_factory=dict)
    body: Any = None
    timeout: float = Field(default=10, gt=0, le=MAX_TIMEOUT)


class Fetcher:
    """Serves the requests of one run; its connections are closed when the block is left."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def serve(self, asked: object) -> JsonDict:
        """The response as status, headers and text; or `failed`, with a reason that names the host and no more."""
        try:
            request = Request.model_validate(asked)
            return await self._fetch(request, _method(request))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            return {"failed": f"fetch: {place}: {first['msg']}"}
        except NotAllowed as error:
            return {"failed": f"fetch: {error}"}

    async def _fetch(self, request: Request, method: str) -> JsonDict:
        from aiohttp import ClientError

        target, url = self._outbound.check(request.url)
        try:
            async with asyncio.timeout(request.timeout):
                return await self._follow(request, method, target.host, url)
        except TimeoutError:
            reason = f"no complete answer within {request.timeout:g} s"
        except (ClientError, OSError, ValueError) as error:
            reason = type(error).__name__  # its words may quote the URL, and a URL may hold a key
        return {"failed": f"fetch: {method} {target}: {reason}"}

    async def _follow(self, request: Request, method: str, host: str, url: str) -> JsonDict:
        headers, body = _content(request)
        self._check_literal(host)
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client().request(
                method, url, headers=headers, data=body, allow_redirects=False
            ) as response:
                onward = response.headers.get("Location")
                if method not in FOLLOWING or not 300 <= response.status < 400 or onward is None:
                    return await _answer(response)
            target, url = self._outbound.check(urljoin(url, onward))
            if target.host != host:
                raise NotAllowed(f"{host} redirects to another host, {target.host}")
        raise NotAllowed(f"{host} redirects more than {MAX_REDIRECTS} times")

    def _check_literal(self, host: str) -> None:
        """An address in the URL is connected to without asking the resolver."""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return
        self._outbound.check_address(host, host)

    def _client(self) -> ClientSession:
        if self._session is None:
            from aiohttp import ClientSession, DummyCookieJar, TCPConnector

            connector = TCPConnector(resolver=_checked_resolver(self._outbound), use_dns_cache=False)
            self._session = ClientSession(connector=connector, cookie_jar=DummyCookieJar(), trust_env=False)
        return self._session


def _checked_resolver(outbound: Outbound) -> AbstractResolver:
    """A resolver that gives only addresses that may be connected to: what was checked is what is used."""
    from aiohttp import ThreadedResolver

    class CheckedResolver(ThreadedResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            found = await super().resolve(host, port, family)
            for item in found:
                outbound.check_address(host, item["host"])
            return found

    return CheckedResolver()


def _method(request: Request) -> str:
    method = request.method.upper()
    if method not in METHODS:
        raise NotAllowed(f"method {request.method!r} cannot be used; use one of {', '.join(sorted(METHODS))}")
    return method


def _content(request: Request) -> tuple[dict[str, str], str | None]:
    """Headers and body as they are sent. Raises NotAllowed for a header that is not the code's to set."""
    own = [name for name in request.headers if name.lower() in OWN_HEADERS]
    if own:
        raise NotAllowed(f"header {own[0]!r} is set by the worker; leave it out")
    if request.body is None or isinstance(request.body, str):
        return request.headers, request.body
    has_type = any(name.lower() == "content-type" for name in request.headers)
    kind = {} if has_type else {"Content-Type": "application/json"}
    return {**request.headers, **kind}, json.dumps(request.body)


async def _answer(response: ClientResponse) -> JsonDict:
    content = bytearray()
    async for piece in response.content.iter_chunked(64 * 1024):
        content += piece
        if len(content) > MAX_BODY_BYTES:
            raise NotAllowed(f"its body is larger than {MAX_BODY_BYTES:,} bytes")
    try:
        text = content.decode(response.charset or "utf-8", errors="replace")
    except LookupError:  # a charset that nobody knows
        text = content.decode(errors="replace")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return {"status": response.status, "headers": headers, "text": text}
