"""Settings: keyword arguments first, then EVERTURN_… environment variables, then these defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, PositiveInt, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from everturn.errors import BadInput


class Settings(BaseSettings):
    """Where things are and how much of them. Durations are seconds. Made by `settings_from`, errors are BadInput."""

    model_config = SettingsConfigDict(env_prefix="EVERTURN_", extra="ignore", frozen=True)

    target: str | None = Field(
        default=None, description="Temporal's host:port; default: Temporal's own environment, then localhost:7233"
    )
    namespace: str | None = Field(
        default=None, description="Temporal namespace; default: Temporal's own environment, then default"
    )
    task_queue: str = Field(default="everturn", min_length=1, description="task queue of the workers")
    store: str | None = Field(default=None, description="database URL: sqlite:///file.db or postgresql://…")
    web_ui: str | None = Field(default=None, description="address of the Temporal Web UI, for links")
    history_previews: bool = Field(default=True, description="short text previews in Temporal's history and Web UI")
    data_converter: str | None = Field(
        default=None, description="MODULE:NAME of a DataConverter for all that is written in Temporal, to encrypt it"
    )
    model_lane: Literal["auto", "litellm"] = Field(
        default="auto",
        description="auto: ask providers of OpenAI's format directly; litellm: all calls through litellm",
    )
    max_concurrent_activities: int = Field(
        default=200, ge=1, description="model steps and tools that run at once in a worker"
    )
    max_concurrent_local_activities: int = Field(
        default=200, ge=1, description="store work and hooks that run at once in a worker"
    )
    max_concurrent_workflow_tasks: int = Field(
        default=100, ge=2, description="turns whose workflow code runs at once in a worker"
    )
    max_cached_workflows: int = Field(default=1000, ge=1, description="turns kept in memory between workflow tasks")
    max_threads: int = Field(default=64, ge=1, description="plain `def` tools and hooks that run at once in a worker")
    pollers: PositiveInt | Literal["auto"] = Field(
        default=5,
        description="requests that a worker keeps open for turns, and for steps; auto: as many as help",
    )
    store_connections: int | None = Field(
        default=None, ge=1, description="database connections of a process; default: 8 on PostgreSQL, 3 on SQLite"
    )
    store_timeout: float = Field(
        default=8.0, gt=0, le=60, description="how long a worker's reads wait for the database or a free connection"
    )
    processes: int = Field(default=1, ge=1, le=256, description="processes of one `everturn worker` command")
    graceful_shutdown: float = Field(
        default=30.0, ge=0, description="how long a stopping worker lets running steps go on"
    )
    stream_flush: float = Field(
        default=0.03, gt=0, le=1, description="longest time a streamed chunk waits for its batch"
    )
    event_retention: float = Field(
        default=7 * 86400.0, gt=0, description="stream events of ended turns are pruned after this long"
    )
    max_queued_per_thread: int = Field(
        default=100, ge=1, description="turns that may wait in a thread; more are refused as TooBusy"
    )
    max_unfinished_per_tenant: int = Field(
        default=10_000, ge=1, description="turns of a tenant that may be queued, running or waiting; more are refused"
    )
    health_port: int | None = Field(
        default=None, ge=0, le=65535, description="port of a worker's health endpoint, 0 for any; default: none"
    )
    health_host: str = Field(default="127.0.0.1", min_length=1, description="address that the endpoint listens at")
    reconcile_every: float = Field(
        default=60.0, ge=5, description="how often lost turns are looked for, by the schedule of `everturn setup`"
    )
    deployment_name: str | None = Field(default=None, description="worker deployment, for Temporal's worker versioning")
    build_id: str | None = Field(default=None, description="build of a worker of that deployment; turns stay on theirs")
    connect_timeout: float = Field(
        default=8.0, gt=0, le=60, description="how long a client tries to reach Temporal or the store"
    )


def settings_from(**given: object) -> Settings:
    """The settings with the keyword arguments that are not None. Raises BadInput, naming each wrong value."""
    named = {name: value for name, value in given.items() if value is not None}
    try:
        return Settings(**named)  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        wrong = "; ".join(f"{_where(e['loc'], named)}: {e['msg']}, not {e['input']!r}" for e in error.errors())
        raise BadInput(f"the settings cannot be used: {wrong}") from error


def _where(location: tuple[int | str, ...], given: Mapping[str, object]) -> str:
    """A setting by the name under which it was given."""
    name = str(location[0]).lower().removeprefix("everturn_")
    return name if name in given else f"EVERTURN_{name.upper()}"


DEFAULT_STORE = "sqlite:///everturn.db"
DEFAULT_TARGET = "localhost:7233"
DEFAULT_NAMESPACE = "default"
