"""From the events of a turn's history to pieces of time: who had the turn, and for what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

TEMPORAL: Final = "Temporal"
WORKFLOW: Final = "workflow code"
LOCAL: Final = "local activities"
ACTIVITY: Final = "activities"
_LOCAL_MARKER: Final = "core_local_activity"


@dataclass(frozen=True, slots=True)
class Segment:
    """begin, end: seconds since the epoch. kind: who had the turn then."""

    begin: float
    end: float
    kind: str
    what: str

    @property
    def ms(self) -> float:
        return (self.end - self.begin) * 1000


@dataclass
class _Task:
    """A workflow task, between the events that belong to it. now: the time that the last local activity ended at."""

    started: float
    completed: float
    local: list[Segment] = field(default_factory=list[Segment])
    now: float = 0.0


def segments(events: Sequence[HistoryEvent]) -> list[Segment]:
    """In order of their beginning. Parallel activities overlap."""
    found: list[Segment] = []
    scheduled: dict[int, HistoryEvent] = {event.event_id: event for event in events}
    task: _Task | None = None
    for event in events:
        kind = event.event_type
        if kind == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            found += _closed(task)
            started = scheduled[event.workflow_task_completed_event_attributes.started_event_id]
            asked = scheduled[event.workflow_task_completed_event_attributes.scheduled_event_id]
            found.append(Segment(_at(asked), _at(started), TEMPORAL, "hands the turn to a worker"))
            task = _Task(_at(started), _at(event), now=_at(started))
        elif kind == EventType.EVENT_TYPE_MARKER_RECORDED and task is not None:
            _add_local(task, event)
        elif kind == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            found += _activity(event, scheduled)
    return sorted([*found, *_closed(task)], key=lambda segment: segment.begin)


def _add_local(task: _Task, event: HistoryEvent) -> None:
    """A local activity: the marker has the time at which it was asked for by the clock, and its end by the workflow's
    time, which stands still within a task but for these ends."""
    attributes = event.marker_recorded_event_attributes
    if attributes.marker_name != _LOCAL_MARKER:
        return
    facts: dict[str, Any] = json.loads(attributes.details["data"].payloads[0].data)
    took = max(0.0, _seconds(facts["complete_time"]) - task.now)
    task.now = _seconds(facts["complete_time"])
    begin = _seconds(facts["original_schedule_time"])
    task.local.append(Segment(begin, min(begin + took, task.completed), LOCAL, str(facts["activity_type"])))


def _closed(task: _Task | None) -> Iterator[Segment]:
    """The local activities of a task, and the workflow code before, between and after them."""
    if task is None:
        return
    now = task.started
    for local in task.local:
        if local.begin > now:
            yield Segment(now, local.begin, WORKFLOW, "decides")
        yield local
        now = max(now, local.end)
    if task.completed > now:
        yield Segment(now, task.completed, WORKFLOW, "decides, and the SDK reports it")


def _activity(event: HistoryEvent, scheduled: dict[int, HistoryEvent]) -> Iterator[Segment]:
    attributes = event.activity_task_completed_event_attributes
    asked, started = scheduled[attributes.scheduled_event_id], scheduled[attributes.started_event_id]
    name = asked.activity_task_scheduled_event_attributes.activity_type.name
    if _at(started) > _at(asked):
        yield Segment(_at(asked), _at(started), TEMPORAL, f"hands out {name}")
    yield Segment(_at(started), _at(event), ACTIVITY, name)


def _at(event: HistoryEvent) -> float:
    return event.event_time.seconds + event.event_time.nanos / 1e9


def _seconds(time: dict[str, int]) -> float:
    return time["seconds"] + time["nanos"] / 1e9
