"""`everturn demo` and `everturn dev`: a whole system on this machine, and a chat with it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from everturn.activities.models.local_lane import LOCAL_MODEL
from everturn.activities.models.local_server import missing_package, missing_text
from everturn.errors import BadInput
from everturn.ids import new_request_id
from everturn.worker.cli.calls import connected
from everturn.worker.cli.chat import Chat
from everturn.worker.cli.following import follow
from everturn.worker.cli.interrupts import stop_requested
from everturn.worker.cli.loading import load_agents
from everturn.worker.cli.local import LocalSystem
from everturn.worker.cli.racing import unless
from everturn.worker.cli.running import DONE
from everturn.worker.cli.services import DEFAULT_PORT, DEFAULT_UI_PORT, announce
from everturn.worker.cli.viewers import make_viewer
from everturn.worker.ports import Preferred
from everturn.worker.sample import MODEL_VARIABLE
from everturn.worker.server_command import ServerOptions

SAMPLE_AGENT, SAMPLE_MODULE = "support", "everturn.worker.sample"
SAMPLE_MESSAGE = "What is the status of order 1001?"
DEV_FOLDER = Path(".everturn")


async def demo(model: str | None = None) -> int:
    """The sample agent, all in memory and a temporary folder: a chat, or one played conversation without a terminal.

    model: its model instead of the built-in `demo`. Raises BadInput if it is `local` and that is not installed.
    """
    if model == LOCAL_MODEL and (missing := missing_package()):
        raise BadInput(missing_text(missing))
    environment = {MODEL_VARIABLE: model} if model else {}
    with tempfile.TemporaryDirectory(prefix="everturn-demo-") as folder:
        server = ServerOptions(state_file=None, log_file=Path(folder) / "temporal.log")
        async with LocalSystem(server, [SAMPLE_MODULE], Path(folder), environment) as system:
            announce(system.server)
            thread_id = f"demo-{new_request_id()[-6:]}"
            if sys.stdin.isatty():
                return await _chat(system, thread_id, SAMPLE_AGENT)
            return await _play(system, thread_id)


async def dev(spec: str) -> int:
    """The author's agent with state in .everturn/; the worker restarts when a file changes."""
    agents = [agent.name for agent in load_agents([spec])]
    if len(agents) > 1:
        raise BadInput(f"{spec} has several agents ({', '.join(agents)}); name one after a colon")
    server = ServerOptions(port=Preferred(DEFAULT_PORT), ui_port=Preferred(DEFAULT_UI_PORT))
    async with stop_requested() as stop, LocalSystem(server, ["--reload", spec], DEV_FOLDER) as system:
        announce(system.server)
        sys.stdout.write(f"Worker    restarts on changes; its log: {system.worker_log}\n")
        sys.stdout.flush()
        if sys.stdin.isatty():
            return await _chat(system, "dev", agents[0])
        await unless(system.worker_ended(), stop.wait())
        return DONE


async def _chat(system: LocalSystem, thread_id: str, agent: str) -> int:
    async with connected(system.places) as client:
        return await unless(system.worker_ended(), Chat(client, thread_id, agent).run())


async def _play(system: LocalSystem, thread_id: str) -> int:
    sys.stdout.write(f"\n> {SAMPLE_MESSAGE}\n")
    async with connected(system.places) as client:
        turn = await client.submit(thread_id, SAMPLE_MESSAGE, agent=SAMPLE_AGENT)
        code = await unless(system.worker_ended(), follow(client, turn.request_id, make_viewer()))
        info = await client.inspect(turn.request_id)
    sys.stdout.write(f"\nThis turn in the Web UI, while the demo runs: {info.web_ui}\n")
    return code
