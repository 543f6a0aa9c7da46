"""The commands and their options. What they do stands in the modules beside this one and is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everturn.worker.cli.options import Debug
from everturn.worker.cli.running import run

app = typer.Typer(
    name="everturn",
    help="Every chat turn of an LLM agent as a Temporal workflow.",
    epilog="Exit codes: 0 done, 1 the turn failed, 2 bad usage, 3 a service cannot be reached.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def server(
    state: Annotated[Path | None, typer.Option(help="file that keeps Temporal's state [.everturn/temporal.db]")] = None,
    in_memory: Annotated[bool, typer.Option("--in-memory", help="keep no state")] = False,
    port: Annotated[int | None, typer.Option(help="port of Temporal [7233, or a free one]")] = None,
    ui_port: Annotated[int | None, typer.Option(help="port of the Web UI [8233, or a free one]")] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="serve the Web UI")] = True,
    namespace: Annotated[str, typer.Option(envvar="EVERTURN_NAMESPACE", help="namespace to create")] = "default",
    debug: Debug = False,
) -> None:
    """Run a Temporal server on this machine until Ctrl-C."""
    from everturn.worker.cli.services import serve, server_options

    run(lambda: serve(server_options(state, in_memory, port, ui_port, ui, namespace)), debug)
