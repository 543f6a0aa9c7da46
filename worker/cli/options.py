"""Options that several commands share. A flag wins over its environment variable, that over the default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from everturn.settings import Settings

_PLACES = "Where things are"

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

    def settings(self) -> Settings:
        """The command line's settings, which always name a store; raises BadInput for a value that cannot be used."""
        from everturn.settings import DEFAULT_STORE, settings_from

        settings = settings_from(**self.given)
        return settings if settings.store else settings.model_copy(update={"store": DEFAULT_STORE})
