"""`everturn hooks`: the commands for turn code, and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from everturn.checks import MAX_COUNT
from everturn.worker.cli.options import AsJson, Debug, Places, Store
from everturn.worker.cli.running import run

hooks = typer.Typer(name="hooks", help="Turn code: a before_turn of an agent, kept in the store.")

_Agent = Annotated[str, typer.Argument(help="name of the agent", show_default=False)]
_By = Annotated[str | None, typer.Option("--by", help="who does it [your user name]", show_default=False)]


@hooks.command("set")
def set_code(
    agent: _Agent,
    file: Annotated[str, typer.Argument(help="Python file, or - for standard input", show_default=False)],
    by: _By = None,
    as_json: AsJson = False,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Store a new version; turns that begin from now on run it."""
    from everturn.worker.cli.hook_commands import set_code as command

    run(lambda: command(Places(store=store), agent, file, by, as_json), debug)


@hooks.command()
def show(
    agent: _Agent,
    version: Annotated[int | None, typer.Option(min=1, max=MAX_COUNT, help="which version [the active one]")] = None,
    as_json: AsJson = False,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Print the code."""
    from everturn.worker.cli.hook_commands import show as command

    run(lambda: command(Places(store=store), agent, version, as_json), debug)


@hooks.command()
def remove(agent: _Agent, by: _By = None, as_json: AsJson = False, store: Store = None, debug: Debug = False) -> None:
    """Let turns that begin from now on run without it; the versions stay stored."""
    from everturn.worker.cli.hook_commands import remove as command

    run(lambda: command(Places(store=store), agent, by, as_json), debug)


@hooks.command()
def log(
    agent: _Agent,
    runs: Annotated[int, typer.Option(min=0, max=1000, help="how many of the newest runs to show")] = 20,
    as_json: AsJson = False,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """List the versions (who, when) and the newest runs with what they logged."""
    from everturn.worker.cli.hook_commands import log as command

    run(lambda: command(Places(store=store), agent, runs, as_json), debug)
