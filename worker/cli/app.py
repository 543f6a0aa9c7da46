"""The commands and their options. What they do stands in the modules beside this one and is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from everturn.worker.cli.hook_app import hooks
from everturn.worker.cli.options import (
    Agents,
    AsJson,
    BuildId,
    Debug,
    DeploymentName,
    HealthHost,
    HealthPort,
    MaxActivities,
    MaxCachedWorkflows,
    MaxLocalActivities,
    MaxWorkflowTasks,
    Namespace,
    Places,
    Pollers,
    Processes,
    RequestId,
    Store,
    Target,
    TaskQueue,
    WorkerOptions,
)
from everturn.worker.cli.overview import Overview
from everturn.worker.cli.running import (
    DONE,
    INTERRUPTED,
    complain,
    complain_of_a_bug,
    run,
    run_without_loop,
    run_worker_command,
)
from everturn.worker.cli.schedule_app import schedule

app = typer.Typer(
    name="everturn",
    cls=Overview,
    help="Every chat turn of an LLM agent as a Temporal workflow.",
    epilog="Exit codes: 0 done, 1 the turn failed, 2 bad usage, 3 a service cannot be reached.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(hooks, rich_help_panel="Turns")
app.add_typer(schedule, rich_help_panel="Turns")

_TRY = "On this machine"
_RUN = "Run"
_TURNS = "Turns"
_AgentName = Annotated[str, typer.Option("--agent", "-a", help="name of the agent", show_default=False)]
_Thread = Annotated[str, typer.Argument(help="id of the conversation", show_default=False)]


def run_command_line(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; `arguments` are the process's own by default."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code: Any = app(given or ["--help"], prog_name="everturn", standalone_mode=False)
    except typer.TyperException as error:
        complain(f"{error.format_message()} (everturn --help shows commands and options)")
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # a command that cannot even be loaded must be one line, too
        return complain_of_a_bug(error, "--debug" in given)
    return code if isinstance(code, int) else DONE


@app.command(rich_help_panel=_TRY)
def demo(
    model: Annotated[
        str | None,
        typer.Option(help='"local" for a small real model, or a provider\'s model [rules]', show_default=False),
    ] = None,
    debug: Debug = False,
) -> None:
    """Try it: Temporal with Web UI, a worker with a sample agent, and a chat, without any set-up."""
    from everturn.worker.cli.demo import demo as play

    run(lambda: play(model), debug)


@app.command(rich_help_panel=_TRY)
def dev(
    agent: Annotated[str, typer.Argument(metavar="MODULE[:AGENT]", help="your agent", show_default=False)],
    debug: Debug = False,
) -> None:
    """The same with your agent; the worker restarts when a file changes."""
    from everturn.worker.cli.demo import dev as develop

    run(lambda: develop(agent), debug)


@app.command(rich_help_panel=_TRY)
def server(
    state: Annotated[Path | None, typer.Option(help="file that keeps Temporal's state [.everturn/temporal.db]")] = None,
    in_memory: Annotated[bool, typer.Option("--in-memory", help="keep no state")] = False,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="port of Temporal [7233, or a free one]")] = None,
    ui_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="port of the Web UI [8233, or a free one]")
    ] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="serve the Web UI")] = True,
    namespace: Annotated[str, typer.Option(envvar="EVERTURN_NAMESPACE", help="namespace to create")] = "default",
    debug: Debug = False,
) -> None:
    """Run a Temporal server on this machine until Ctrl-C."""
    from everturn.worker.cli.services import serve, server_options

    run(lambda: serve(server_options(state, in_memory, port, ui_port, ui, namespace)), debug)


@app.command(rich_help_panel=_RUN)
def setup(
    target: Target = None,
    namespace: Namespace = None,
    task_queue: TaskQueue = None,
    store: Store = None,
    schedule: Annotated[
        bool, typer.Option("--schedule/--no-schedule", help="let Temporal look for lost turns every minute")
    ] = True,
    debug: Debug = False,
) -> None:
    """Create the store's tables, Temporal's search attributes and its schedule; safe to repeat."""
    from everturn.worker.cli.setup import set_up

    run(lambda: set_up(Places(target, namespace, task_queue, store), schedule=schedule), debug)


@app.command(rich_help_panel=_RUN)
def doctor(
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[MODULE[:AGENT]]…", help="agents whose models to check")
    ] = None,
    target: Target = None,
    namespace: Namespace = None,
    task_queue: TaskQueue = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Check Temporal, the store, model access and versions, and say what to do."""
    from everturn.worker.cli.doctor import examine

    run(lambda: examine(agents or [], Places(target, namespace, task_queue, store)), debug)


@app.command(rich_help_panel=_RUN)
def worker(
    agents: Agents,
    target: Target = None,
    namespace: Namespace = None,
    task_queue: TaskQueue = None,
    store: Store = None,
    processes: Processes = None,
    reload: Annotated[bool, typer.Option("--reload", help="restart when a Python file changes")] = False,
    health_port: HealthPort = None,
    health_host: HealthHost = None,
    max_activities: MaxActivities = None,
    max_local_activities: MaxLocalActivities = None,
    max_workflow_tasks: MaxWorkflowTasks = None,
    max_cached_workflows: MaxCachedWorkflows = None,
    pollers: Pollers = None,
    deployment_name: DeploymentName = None,
    build_id: BuildId = None,
    debug: Debug = False,
) -> None:
    """Run the turns of your agents until SIGTERM, which drains."""
    from everturn.worker.cli.workers import work, work_and_reload

    options = WorkerOptions(
        max_activities,
        max_local_activities,
        max_workflow_tasks,
        max_cached_workflows,
        pollers,
        health_port,
        health_host,
        processes,
        deployment_name,
        build_id,
    )
    places = Places(target, namespace, task_queue, store)
    if (processes or 1) > 1 and not reload:
        from everturn.worker.cli.several import work_in_processes

        run_without_loop(lambda: work_in_processes(agents, places, options, debug), debug)
    run_worker_command(lambda: (work_and_reload if reload else work)(agents, places, options), debug)


@app.command(rich_help_panel=_TURNS)
def chat(
    thread: _Thread,
    agent: _AgentName,
    target: Target = None,
    namespace: Namespace = None,
    task_queue: TaskQueue = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Chat in the terminal: /stop, /history, /quit; Ctrl-C stops a turn."""
    from everturn.worker.cli.chat import chat as converse

    run(lambda: converse(thread, agent, Places(target, namespace, task_queue, store)), debug)


@app.command(rich_help_panel=_TURNS)
def submit(
    thread: _Thread,
    message: Annotated[str, typer.Argument(help="the user's words, or - for standard input", show_default=False)],
    agent: _AgentName,
    request_id: Annotated[str | None, typer.Option(help="id of the turn; the same id never runs twice")] = None,
    policy: Annotated[
        str, typer.Option(help="in a busy thread: queue, reject, drop, latest, merge, debounce:SECONDS")
    ] = "queue",
    body: Annotated[str | None, typer.Option(help="JSON object for hooks and tools")] = None,
    user: Annotated[str | None, typer.Option(help="id of the person who chats")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="return as soon as the turn is accepted")] = False,
    as_json: AsJson = False,
    target: Target = None,
    namespace: Namespace = None,
    task_queue: TaskQueue = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Submit a message and show the answer as it comes."""
    from everturn.worker.cli.calls import Request
    from everturn.worker.cli.calls import submit as call

    request = Request(thread, message, agent, request_id, policy, body, user, detach)
    run(lambda: call(Places(target, namespace, task_queue, store), request, as_json), debug)


@app.command(rich_help_panel=_TURNS)
def stream(
    request_id: RequestId,
    after: Annotated[int, typer.Option(min=0, help="show chunks after this number")] = 0,
    as_json: AsJson = False,
    target: Target = None,
    namespace: Namespace = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Show a turn from the beginning to its end; --json prints a line per chunk."""
    from everturn.worker.cli.calls import stream as call

    run(lambda: call(Places(target, namespace, None, store), request_id, after, as_json), debug)


@app.command(rich_help_panel=_TURNS)
def cancel(
    request_id: RequestId,
    reason: Annotated[str, typer.Option(help="kept with the turn")] = "cancelled from the command line",
    as_json: AsJson = False,
    target: Target = None,
    namespace: Namespace = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Stop a turn; what was said is kept."""
    from everturn.worker.cli.calls import cancel as call

    run(lambda: call(Places(target, namespace, None, store), request_id, reason, as_json), debug)


@app.command(rich_help_panel=_TURNS)
def inspect(
    request_id: RequestId,
    hooks: Annotated[bool, typer.Option("--hooks", help="show what each hook changed, logged and took")] = False,
    as_json: AsJson = False,
    target: Target = None,
    namespace: Namespace = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Show what a turn did: steps, tool calls, usage, hooks, error, Web UI link."""
    from everturn.worker.cli.calls import inspect as call

    run(lambda: call(Places(target, namespace, None, store), request_id, as_json, hooks=hooks), debug)


@app.command(rich_help_panel=_TURNS)
def turns(
    thread: Annotated[str | None, typer.Option(help="only of this thread")] = None,
    status: Annotated[str | None, typer.Option(help="only with this status")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="how many, newest first")] = 50,
    as_json: AsJson = False,
    target: Target = None,
    namespace: Namespace = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """List turns, newest first."""
    from everturn.worker.cli.calls import turns as call

    run(lambda: call(Places(target, namespace, None, store), thread, status, limit, as_json), debug)


@app.command(rich_help_panel=_TURNS)
def messages(
    thread: _Thread,
    as_json: AsJson = False,
    target: Target = None,
    namespace: Namespace = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Show the transcript of a thread."""
    from everturn.worker.cli.calls import messages as call

    run(lambda: call(Places(target, namespace, None, store), thread, as_json), debug)
