"""A worker's limits: from the settings, unless the caller of the worker has set them."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.worker import PollerBehaviorAutoscaling, PollerBehaviorSimpleMaximum, WorkerTuner

from everturn.errors import BadInput
from everturn.settings import Settings, settings_from
from everturn.worker.cli.options import Places, WorkerOptions
from everturn.worker.limits import apply_limits


def applied(given: dict[str, Any], **settings: Any) -> dict[str, Any]:
    apply_limits(given, Settings(**settings))
    return given


def test_every_limit_is_the_settings() -> None:
    given = {
        "max_concurrent_activities": 7,
        "max_concurrent_local_activities": 8,
        "max_concurrent_workflow_tasks": 9,
        "max_cached_workflows": 10,
    }
    pollers = PollerBehaviorSimpleMaximum(maximum=3)
    expected = {**given, "workflow_task_poller_behavior": pollers, "activity_task_poller_behavior": pollers}
    assert applied({}, pollers=3, **given) == expected


def test_what_the_caller_has_set_stays() -> None:
    given = {"max_concurrent_activities": 5, "max_cached_workflows": 6, "max_concurrent_workflow_tasks": 4}
    assert {name: applied(dict(given))[name] for name in given} == given


def test_a_tuner_of_the_callers_takes_the_place_of_the_limits_that_it_decides() -> None:
    tuner = WorkerTuner.create_resource_based(target_memory_usage=0.8, target_cpu_usage=0.8)
    made = applied({"tuner": tuner})
    assert made["tuner"] is tuner
    assert not [name for name in made if name.startswith("max_concurrent")]


def test_pollers_can_be_left_to_the_sdk() -> None:
    assert isinstance(applied({}, pollers="auto")["activity_task_poller_behavior"], PollerBehaviorAutoscaling)


def test_the_command_lines_options_become_settings_here_and_in_a_process_that_it_starts() -> None:
    options = WorkerOptions(max_concurrent_activities=7, pollers="auto", health_port=0)
    settings = Places().settings(options.given)
    assert (settings.max_concurrent_activities, settings.pollers, settings.health_port) == (7, "auto", 0)
    assert options.environment == {
        "EVERTURN_MAX_CONCURRENT_ACTIVITIES": "7",
        "EVERTURN_POLLERS": "auto",
        "EVERTURN_HEALTH_PORT": "0",
    }


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("EVERTURN_MAX_CONCURRENT_ACTIVITIES", "0"),
        ("EVERTURN_MAX_CONCURRENT_LOCAL_ACTIVITIES", "-1"),
        ("EVERTURN_MAX_CONCURRENT_WORKFLOW_TASKS", "1"),
        ("EVERTURN_MAX_CACHED_WORKFLOWS", "many"),
        ("EVERTURN_POLLERS", "0"),
        ("EVERTURN_STORE_CONNECTIONS", "0"),
        ("EVERTURN_STORE_TIMEOUT", "0"),
        ("EVERTURN_MAX_THREADS", "0"),
        ("EVERTURN_MAX_QUEUED_PER_THREAD", "0"),
        ("EVERTURN_MAX_UNFINISHED_PER_TENANT", "0"),
    ],
)
def test_a_limit_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(BadInput, match=variable):
        settings_from()
