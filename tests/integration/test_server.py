"""The embedded server as a real child process."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest
from temporalio.client import Client

from everturn.errors import ServerFailed
from everturn.search_attributes import missing_search_attributes
from everturn.worker.ports import LOOPBACK, Preferred
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions, find_binary
from tests.services.temporal import TemporalService

PARENT = """
import asyncio, sys
from pathlib import Path
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions

async def main():
    server = EmbeddedServer(ServerOptions(state_file=Path(sys.argv[1]), ui=False))
    await server.start()
    print(server._process.pid, server.address, flush=True)
    await server.wait()

asyncio.run(main())
"""


async def test_a_started_server_knows_our_search_attributes(temporal: TemporalService) -> None:
    assert await missing_search_attributes(await temporal.connect()) == []


async def test_a_state_file_of_another_server_gets_our_search_attributes(tmp_path: Path) -> None:
    state = tmp_path / "temporal.db"
    port = _free_port()
    bare = await asyncio.create_subprocess_exec(
        *(find_binary(), "server", "start-dev", "--headless", "--ip", LOOPBACK),
        *("--port", str(port), "--db-filename", str(state)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    await _wait_for_listener(port)
    bare.terminate()
    await bare.wait()
    async with EmbeddedServer(ServerOptions(state_file=state, ui=False)) as server:
        assert await missing_search_attributes(await Client.connect(server.address)) == []


async def test_a_second_server_on_the_same_state_file_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    options = ServerOptions(state_file=tmp_path / "temporal.db", ui=False)
    async with EmbeddedServer(options) as first:
        with pytest.raises(ServerFailed, match=f"belongs to another Temporal server .*{first.address}"):
            await EmbeddedServer(options).start()
        await Client.connect(first.address)
    async with EmbeddedServer(options) as again:
        await Client.connect(again.address)


async def test_a_preferred_port_that_is_taken_is_replaced_with_a_note() -> None:
    with closing(_listener()) as taken:
        port = taken.getsockname()[1]
        async with EmbeddedServer(ServerOptions(state_file=None, port=Preferred(port), ui=False)) as server:
            assert server.address != f"{LOOPBACK}:{port}"
            assert [f"port {port} is in use" in note for note in server.notes] == [True]


async def test_a_demanded_port_that_is_taken_is_an_error_that_names_it() -> None:
    with closing(_listener()) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerFailed, match=f"port {port} for Temporal is in use"):
            await EmbeddedServer(ServerOptions(state_file=None, port=port)).start()


async def test_a_server_that_dies_early_reports_its_last_log_lines(tmp_path: Path) -> None:
    state = tmp_path / "temporal.db"
    state.write_bytes(b"this is no database" * 1000)
    with pytest.raises(ServerFailed, match=r"(?s)ended while it started \(exit code 1\).*not a database"):
        await EmbeddedServer(ServerOptions(state_file=state)).start()


async def test_a_server_dies_with_a_parent_that_is_killed_and_frees_its_state_file(tmp_path: Path) -> None:
    state = tmp_path / "temporal.db"
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(state)), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid, address = (await asyncio.wait_for(parent.stdout.readline(), 30)).decode().split()
    await Client.connect(address)
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    async with EmbeddedServer(ServerOptions(state_file=state, ui=False)) as server:
        await Client.connect(server.address)
    assert not _runs(pid)


def _runs(pid: str) -> bool:
    """False for a process that is gone, or dead and not yet collected by its new parent."""
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind((LOOPBACK, 0))
    listener.listen()
    return listener


def _free_port() -> int:
    with closing(_listener()) as listener:
        port: int = listener.getsockname()[1]
        return port


async def _wait_for_listener(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection(LOOPBACK, port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
