"""A worker's health endpoint, asked over real HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from everturn import Agent, BadInput, ChatClient, run_worker, tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.settings import Settings
from everturn.worker import health
from everturn.worker.health import HealthServer
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions
from everturn.worker.vitals import Report
from tests.integration.turns.lab import eventually, make_agent

WAIT = 30.0


async def talk(address: str, request: bytes, *, end: bool = False) -> bytes:
    """Sends bytes and reads until the other side closes. end: closes our side of the connection first."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(WAIT):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(request)
            if end:
                writer.write_eof()
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


async def get(address: str, path: str) -> tuple[int, dict[str, Any]]:
    answer = await talk(address, f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    return int(head.split(b" ")[1]), json.loads(body)


async def good() -> Report:
    return Report(True, {"status": "fine"})


async def bad() -> Report:
    return Report(False, {"status": "ill", "why": "ö"})


async def broken() -> Report:
    raise RuntimeError("a probe with a bug")


PROBES = {"/good": good, "/bad": bad, "/broken": broken}


async def test_a_good_report_is_200_and_a_bad_one_503(caplog: pytest.LogCaptureFixture) -> None:
    async with HealthServer("127.0.0.1", 0, PROBES) as server:
        assert await get(server.address, "/good") == (200, {"status": "fine"})
        assert await get(server.address, "/bad?verbose=1") == (503, {"status": "ill", "why": "ö"})
        assert (await get(server.address, "/other"))[0] == 404
        assert (await get(server.address, "/broken"))[0] == 500
        assert "a probe with a bug" in caplog.text
        head = await talk(server.address, b"HEAD /good HTTP/1.1\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert head.endswith(b"\r\n\r\n")
        assert (await talk(server.address, b"POST /good HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"GET /good FTP/1.0\r\n\r\n", b"400"),
        (b"GET /good HTTP/1.1\r\nHost", b"400"),
        (b"GET /" + b"x" * 20_000, b"431"),
        (b"GET /good HTTP/1.1\r\nX: " + b"y" * 20_000 + b"\r\n\r\n", b"431"),
        (b"", b""),
    ],
    ids=["blank", "tls", "one-word", "not-http", "cut-off", "long-path", "long-header", "nothing"],
)
async def test_what_is_no_request_is_refused_and_the_next_one_answered(sent: bytes, status: bytes) -> None:
    async with HealthServer("127.0.0.1", 0, PROBES) as server:
        answer = await talk(server.address, sent, end=True)
        assert answer.split(b" ")[1:2] == ([status] if status else [])
        assert (await get(server.address, "/good"))[0] == 200


async def test_silent_connections_are_closed_in_time_and_never_keep_a_probe_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "TIMEOUT", 0.5)
    monkeypatch.setattr(health, "MAX_CONNECTIONS", 5)
    async with HealthServer("127.0.0.1", 0, PROBES) as server:
        began = time.monotonic()
        silent = [asyncio.create_task(talk(server.address, b"GET /good")) for _ in range(20)]
        assert await asyncio.gather(*silent) == [b""] * 20
        assert time.monotonic() - began < WAIT / 2
        assert (await get(server.address, "/good"))[0] == 200


async def test_a_port_that_is_taken_is_named() -> None:
    async with HealthServer("127.0.0.1", 0, PROBES) as server:
        port = int(server.address.rpartition(":")[2])
        with pytest.raises(BadInput, match=f"127.0.0.1:{port}.*EVERTURN_HEALTH_PORT"):
            async with HealthServer("127.0.0.1", port, PROBES):
                pass


@tool(timeout=60)
async def linger() -> str:
    """Waits until it is stopped."""
    await asyncio.Event().wait()
    return "never"


@asynccontextmanager
async def probed_worker(
    agent: Agent, client: Client, task_queue: str, store_url: str, caplog: pytest.LogCaptureFixture, **settings: Any
) -> AsyncGenerator[tuple[Callable[[str], Any], asyncio.Event]]:
    """A worker with a health endpoint: asks it, and stops the worker."""
    given = Settings(health_port=0, task_queue=task_queue, store=store_url, **settings)
    started, stop = asyncio.Event(), asyncio.Event()
    with caplog.at_level(logging.INFO, "everturn.worker"):
        running = asyncio.create_task(
            run_worker(
                [agent], client=client, store=store_url, create_store=True, settings=given, started=started, stop=stop
            )
        )
        try:
            async with asyncio.timeout(WAIT):
                await started.wait()
            found = re.findall(r"health at http://(\S+)", caplog.text)
            yield lambda path: get(found[-1], path), stop
        finally:
            stop.set()
            await running


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


async def test_a_worker_tells_that_it_is_ready_what_it_runs_and_that_it_drains(
    client: Client, model_server: ScriptedModelServer, task_queue: str, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = make_agent(model_server, tools=[linger])
    async with probed_worker(agent, client, task_queue, store_url, caplog, graceful_shutdown=3.0) as (ask, stop):
        status, facts = await ask("/readyz")
        assert (status, facts["status"], facts["temporal"], facts["store"]) == (200, "ready", "ok", "ok")
        assert (await ask("/healthz"))[0] == 200
        async with await ChatClient.connect(client, task_queue=task_queue, store=store_url) as chat:
            turn = await chat.submit("thread", "[[tools tool=linger args='{}']]", agent="agent")

            async def is_running() -> bool:
                return bool((await ask("/healthz"))[1]["running_turns"] == 1)

            await eventually(is_running, "the tool runs")
            stop.set()

            async def is_draining() -> bool:
                return (await ask("/readyz"))[0] == 503

            await eventually(is_draining, "the worker drains")
            assert (await ask("/readyz"))[1]["status"] == "draining"
            assert (await ask("/healthz"))[0] == 200
            assert (await client.get_workflow_handle(turn.workflow_id).describe()).status is not None
            await client.get_workflow_handle(turn.workflow_id).terminate()


async def test_a_loop_that_stood_still_is_counted(
    client: Client, model_server: ScriptedModelServer, task_queue: str, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with probed_worker(make_agent(model_server), client, task_queue, store_url, caplog) as (ask, _):
        before = (await ask("/healthz"))[1]["stalls"]
        time.sleep(0.6)

        async def is_counted() -> bool:
            facts = (await ask("/healthz"))[1]
            return bool(facts["stalls"] > before and facts["longest_stall_ms"] >= 400)

        await eventually(is_counted, "the stall is counted")
        assert "worker:loop:stalled" in caplog.text


async def test_a_worker_that_cannot_reach_a_service_is_alive_and_not_ready(
    model_server: ScriptedModelServer, task_queue: str, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with EmbeddedServer(ServerOptions(state_file=None, ui=False)) as server:
        client = await Client.connect(server.address)
        agent = make_agent(model_server)
        async with probed_worker(agent, client, task_queue, store_url, caplog, graceful_shutdown=0.0) as (ask, _):
            await eventually(lambda: _has(ask, "store", "ok"), "the store answers")
            path = store_url.removeprefix("sqlite:///")
            with sqlite3.connect(path) as connection:
                connection.execute("ALTER TABLE everturn_schema RENAME TO moved")
            await eventually(lambda: _has(ask, "status", "unavailable"), "the store is missed")
            with sqlite3.connect(path) as connection:
                connection.execute("ALTER TABLE moved RENAME TO everturn_schema")
            await eventually(lambda: _has(ask, "status", "ready"), "the store is back")
            await server.stop()
            await eventually(lambda: _has(ask, "status", "unavailable"), "Temporal is missed")
            status, facts = await ask("/readyz")
            assert (status, facts["store"]) == (503, "ok")
            assert facts["temporal"] != "ok"
            assert (await ask("/healthz"))[0] == 200


async def _has(ask: Callable[[str], Any], name: str, value: str) -> bool:
    return bool((await ask("/readyz"))[1].get(name) == value)
