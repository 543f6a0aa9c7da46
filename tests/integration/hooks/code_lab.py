"""Turn code run as the worker runs it, and a service on loopback that it may fetch."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from everturn import Block, Principal, TurnCode, TurnConfig, TurnContext
from everturn.hooks.contexts import TurnRef
from everturn.hooks.registry import BoundHook
from everturn.hooks.runner import HookRun, log_for, run_hook

USER = Principal(id="u1", email="u@example.com", roles=("admin",), metadata={"plan": "gold"})


@dataclass
class Ran:
    """One run: what the hook runner made of it, and the context that the code saw."""

    run: HookRun
    ctx: TurnContext

    @property
    def outcome(self) -> str:
        return self.run.outcome

    @property
    def said(self) -> list[str]:
        return [line["message"] for line in self.run.logs]


async def play(source: str, *, messages: list[Any] | None = None, user: Principal = USER, **options: Any) -> Ran:
    """Runs a code for a turn with the system prompt "Be kind." and the message "hi"."""
    code = TurnCode(source=source, **options)
    hook = BoundHook(code.label, "before_turn", code.before_turn, code)
    log = log_for(hook)
    ctx = TurnContext(
        TurnRef("r1", "t1", "agent", principal=user, tenant_id="acme"),
        log,
        system="Be kind.",
        messages=messages or [{"role": "user", "content": "hi"}],
        tools={},
        model="openai/small",
        temperature=0.5,
    )
    with ThreadPoolExecutor(1) as threads:
        return Ran(await run_hook(hook, log, ctx, answers=(TurnConfig, Block), executor=threads), ctx)


def processes_of(mark: str, parent: int | None = None) -> list[int]:
    """The processes, of `parent` if given, whose command line contains `mark`. Linux only."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            of = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it is gone by now
            continue
        if mark.encode() in command and parent in (None, of):
            found.append(int(entry.name))
    return found


@dataclass
class Site:
    """A web service that notes its requests."""

    url: str
    seen: list[tuple[str, str, dict[str, str], str]]


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Serves /facts (JSON), /echo, /big and /to?where=… (a redirect)."""
    seen: list[tuple[str, str, dict[str, str], str]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append((request.method, request.path_qs, dict(request.headers), await request.text()))
        match request.path:
            case "/facts":
                return web.json_response({"facts": ["Paris is in France."]})
            case "/big":
                return web.Response(text="x" * 2 * 1024 * 1024)
            case "/to":
                return web.Response(status=302, headers={"Location": request.query["where"]})
            case _:
                return web.Response(text=await request.text(), headers={"X-Seen": "yes"})

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield Site(f"http://127.0.0.1:{runner.addresses[0][1]}", seen)
    finally:
        await runner.cleanup()


@asynccontextmanager
async def silent_site() -> AsyncIterator[str]:
    """The address of a service that takes requests and never answers."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the other side gives up
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
