"""How much a worker does at once, by its settings."""

from __future__ import annotations

from typing import Any, Final

from temporalio.worker import PollerBehavior, PollerBehaviorAutoscaling, PollerBehaviorSimpleMaximum

from everturn.settings import Settings

SDK_POLLERS: Final = PollerBehaviorSimpleMaximum(maximum=5)
"""The SDK's default."""


def apply_limits(config: dict[str, Any], settings: Settings) -> None:
    """Fills the limits that the caller of the worker has left at the SDK's defaults; a tuner of the caller's stays."""
    if config.get("tuner") is None:
        replace_default(config, "max_concurrent_activities", None, settings.max_concurrent_activities)
        replace_default(config, "max_concurrent_local_activities", None, settings.max_concurrent_local_activities)
        replace_default(config, "max_concurrent_workflow_tasks", None, settings.max_concurrent_workflow_tasks)
    replace_default(config, "max_cached_workflows", 1000, settings.max_cached_workflows)
    pollers = _pollers(settings)
    replace_default(config, "workflow_task_poller_behavior", SDK_POLLERS, pollers)
    replace_default(config, "activity_task_poller_behavior", SDK_POLLERS, pollers)


def replace_default(config: dict[str, Any], name: str, default: object, value: object) -> None:
    if config.get(name, default) == default:
        config[name] = value


def _pollers(settings: Settings) -> PollerBehavior:
    if settings.pollers == "auto":
        return PollerBehaviorAutoscaling()
    return PollerBehaviorSimpleMaximum(maximum=settings.pollers)
