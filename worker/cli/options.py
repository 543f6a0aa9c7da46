"""Options that several commands share. A flag wins over its environment variable, that over the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from everturn.settings import Settings

_PLACES = "Where things are"
_BUILD = "Which build this is"
_LIMITS = "How much at once"

Target = Annotated[
    str | None,
    typer.Option(help="Temporal's host:port", envvar="EVERTURN_TARGET", rich_help_panel=_PLACES, show_default=False),
]
Namespace = Annotated[
    str | None,
    typer.Option(help="Temporal namespace", envvar="EVERTURN_NAMESPACE", rich_help_panel=_PLACES, show_default=False),
]
TaskQueue = Annotated[
    str | None,
    typer.Option(
        help="task queue of the workers", envvar="EVERTURN_TASK_QUEUE", rich_help_panel=_PLACES, show_default=False
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        help="database: sqlite:///file.db or postgresql://…",
        envvar="EVERTURN_STORE",
        rich_help_panel=_PLACES,
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Debug = Annotated[bool, typer.Option("--debug", help="show tracebacks")]
RequestId = Annotated[str, typer.Argument(help="id of the turn", show_default=False)]
Agents = Annotated[
    list[str], typer.Argument(metavar="MODULE[:AGENT]…", help="file or module, and which agent", show_default=False)
]


MaxActivities = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="model steps and tools [200]",
        envvar="EVERTURN_MAX_CONCURRENT_ACTIVITIES",
        rich_help_panel=_LIMITS,
        show_default=False,
    ),
]
MaxLocalActivities = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="store work and hooks [200]",
        envvar="EVERTURN_MAX_CONCURRENT_LOCAL_ACTIVITIES",
        rich_help_panel=_LIMITS,
        show_default=False,
    ),
]
MaxWorkflowTasks = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="turns whose workflow code runs [100]",
        envvar="EVERTURN_MAX_CONCURRENT_WORKFLOW_TASKS",
        rich_help_panel=_LIMITS,
        show_default=False,
    ),
]
MaxCachedWorkflows = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="turns kept in memory [1000]",
        envvar="EVERTURN_MAX_CACHED_WORKFLOWS",
        rich_help_panel=_LIMITS,
        show_default=False,
    ),
]
Pollers = Annotated[
    str | None,
    typer.Option(
        help="open requests for work, or auto [5]",
        envvar="EVERTURN_POLLERS",
        rich_help_panel=_LIMITS,
        show_default=False,
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=256,
        help="worker processes under one parent, which replaces those that die [1]",
        envvar="EVERTURN_PROCESSES",
        show_default=False,
    ),
]
HealthPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        help="serve /healthz and /readyz, each process on the next port; 0: any free one",
        envvar="EVERTURN_HEALTH_PORT",
        show_default=False,
    ),
]
HealthHost = Annotated[
    str | None,
    typer.Option(help="where to serve them [127.0.0.1]", envvar="EVERTURN_HEALTH_HOST", show_default=False),
]


DeploymentName = Annotated[
    str | None,
    typer.Option(
        help="worker deployment, for Temporal's worker versioning",
        envvar="EVERTURN_DEPLOYMENT_NAME",
        rich_help_panel=_BUILD,
        show_default=False,
    ),
]
BuildId = Annotated[
    str | None,
    typer.Option(
        help="this build's id; turns stay on the build that they begin on",
        envvar="EVERTURN_BUILD_ID",
        rich_help_panel=_BUILD,
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What `everturn worker` was given beside places; None leaves it to the environment and the defaults."""

    max_concurrent_activities: int | None = None
    max_concurrent_local_activities: int | None = None
    max_concurrent_workflow_tasks: int | None = None
    max_cached_workflows: int | None = None
    pollers: str | None = None
    health_port: int | None = None
    health_host: str | None = None
    processes: int | None = None
    deployment_name: str | None = None
    build_id: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def environment(self) -> dict[str, str]:
        """The same for a process that we start."""
        return {f"EVERTURN_{name.upper()}": str(value) for name, value in self.given.items()}


@dataclass(frozen=True, slots=True)
class Places:
    """Where Temporal and the store are, as given; None leaves it to the environment and the defaults."""

    target: str | None = None
    namespace: str | None = None
    task_queue: str | None = None
    store: str | None = None
    web_ui: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        named = {
            "target": self.target,
            "namespace": self.namespace,
            "task_queue": self.task_queue,
            "store": self.store,
            "web_ui": self.web_ui,
        }
        return {name: value for name, value in named.items() if value is not None}

    @property
    def environment(self) -> dict[str, str]:
        """The same for a process that we start."""
        return {f"EVERTURN_{name.upper()}": value for name, value in self.given.items()}

    def settings(self, more: Mapping[str, Any] | None = None) -> Settings:
        """The command line's settings, which always name a store; `more` are others that were given.

        Raises BadInput for a value that cannot be used.
        """
        from everturn.settings import DEFAULT_STORE, settings_from

        settings = settings_from(**self.given, **(more or {}))
        return settings if settings.store else settings.model_copy(update={"store": DEFAULT_STORE})
