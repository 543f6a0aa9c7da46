"""`everturn schedule`: the commands for turns that start by the clock, and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from everturn.worker.cli.options import AsJson, Debug, Namespace, Places, Target, TaskQueue
from everturn.worker.cli.running import run

schedule = typer.Typer(name="schedule", help="Turns that start by the clock.")

_Id = Annotated[str, typer.Argument(metavar="ID", help="id of the schedule", show_default=False)]


@schedule.command()
def create(  # noqa: PLR0913, PLR0917 - a command's options are its parameters
    schedule_id: _Id,
    thread: Annotated[str, typer.Argument(help="id of the conversation", show_default=False)],
    message: Annotated[str, typer.Argument(help="the user's words, or - for standard input", show_default=False)],
    agent: Annotated[str, typer.Option("--agent", "-a", help="name of the agent", show_default=False)],
    cron: Annotated[str | None, typer.Option(help='"minute hour day month weekday"')] = None,
    every: Annotated[str | None, typer.Option(help="a span of time: 30s, 15m, 1h30m, 7d")] = None,
    at: Annotated[str | None, typer.Option(help="once: 2026-01-31T09:00+01:00; without an offset, local time")] = None,
    time_zone: Annotated[str | None, typer.Option(help="of --cron, say Europe/Berlin [UTC]")] = None,
    policy: Annotated[
        str, typer.Option(help="in a busy thread: queue, reject, drop, latest, merge, debounce:SECONDS")
    ] = "queue",
    body: Annotated[str | None, typer.Option(help="JSON object for hooks and tools")] = None,
    user: Annotated[str | None, typer.Option(help="id of the person on whose behalf")] = None,
    as_json: AsJson = False,
    target: Target = None,
    namespace: Namespace = None,
    task_queue: TaskQueue = None,
    debug: Debug = False,
) -> None:
    """Submit a message by the clock: give one of --cron, --every and --at."""
    from everturn.worker.cli.schedule_commands import Plan
    from everturn.worker.cli.schedule_commands import create as command

    plan = Plan(schedule_id, thread, message, agent, cron, every, at, time_zone, policy, body, user)
    run(lambda: command(Places(target, namespace, task_queue), plan, as_json), debug)


@schedule.command("list")
def list_(as_json: AsJson = False, target: Target = None, namespace: Namespace = None, debug: Debug = False) -> None:
    """List the schedules with their next time and their last turn."""
    from everturn.worker.cli.schedule_commands import show_all

    run(lambda: show_all(Places(target, namespace), as_json), debug)


@schedule.command()
def remove(
    schedule_id: _Id, as_json: AsJson = False, target: Target = None, namespace: Namespace = None, debug: Debug = False
) -> None:
    """End a schedule; turns that it has started go on."""
    from everturn.worker.cli.schedule_commands import remove as command

    run(lambda: command(Places(target, namespace), schedule_id, as_json), debug)
