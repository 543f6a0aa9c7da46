"""`everturn server`: the embedded Temporal server alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from everturn.errors import ServerFailed
from everturn.worker.cli.interrupts import stop_requested
from everturn.worker.cli.racing import unless
from everturn.worker.cli.running import DONE
from everturn.worker.ports import PortWish, Preferred
from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import DEFAULT_STATE, ServerOptions

DEFAULT_PORT, DEFAULT_UI_PORT = 7233, 8233


def server_options(
    state: Path | None, in_memory: bool, port: int | None, ui_port: int | None, ui: bool, namespace: str
) -> ServerOptions:
    """What the flags mean: a port that was asked for must be had, the usual ones may be replaced."""
    wish: PortWish = Preferred(DEFAULT_PORT) if port is None else port
    ui_wish: PortWish = Preferred(DEFAULT_UI_PORT) if ui_port is None else ui_port
    state_file = None if in_memory else (state or DEFAULT_STATE)
    return ServerOptions(state_file=state_file, port=wish, ui_port=ui_wish, ui=ui, namespace=namespace)


async def serve(options: ServerOptions) -> int:
    """Runs the server until SIGINT or SIGTERM; raises ServerFailed if it ends by itself."""
    async with stop_requested() as stop, EmbeddedServer(options) as server:
        announce(server)
        await unless(_ended(server), stop.wait())
        sys.stderr.write("everturn: stopping the server\n")
    return DONE


async def _ended(server: EmbeddedServer) -> NoReturn:
    code = await server.wait()
    raise ServerFailed(f"the Temporal server ended by itself (exit code {code}); see {server.log_file}")


def announce(server: EmbeddedServer) -> None:
    """Says where the server is; notes go to standard error."""
    for note in server.notes:
        sys.stderr.write(f"everturn: {note}\n")
    state = server.options.state_file
    lines = [f"Temporal  {server.address}  (namespace {server.options.namespace})"]
    lines += [f"Web UI    {server.web_ui}"] if server.web_ui else []
    lines += [f"State     {state or 'in memory, gone when the server stops'}"]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
