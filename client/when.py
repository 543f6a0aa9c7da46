"""When a schedule fires: checked, and in Temporal's terms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.client import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec

from everturn.checks import check_text, shown
from everturn.errors import BadInput

MAX_CRON_BYTES: Final = 200
SHORTEST: Final = timedelta(seconds=1)
"""Temporal's schedules count in whole seconds."""
LONGEST: Final = timedelta(days=3660)
AHEAD: Final = timedelta(seconds=2)
"""A single time that has passed when the schedule reaches the server would never fire."""


@dataclass(frozen=True, slots=True)
class When:
    """text: for people. once: it fires a single time."""

    spec: ScheduleSpec
    text: str
    once: bool = False


def make_when(
    cron: str | None, every: timedelta | None, at: datetime | None, time_zone: str | None, now: datetime
) -> When:
    """Exactly one of cron, every and at. Raises BadInput, naming the value that cannot be used."""
    given = [name for name, value in (("cron", cron), ("every", every), ("at", at)) if value is not None]
    if len(given) != 1:
        raise BadInput(f"a schedule needs one of cron, every and at, not {' and '.join(given) or 'none of them'}")
    if time_zone is not None and cron is None:
        raise BadInput(f"time_zone goes with cron only; {given[0]} needs none")
    if cron is not None:
        return _by_cron(cron, time_zone)
    return _by_interval(every) if every is not None else _at_once(at, now)


def _by_cron(cron: object, time_zone: str | None) -> When:
    line = check_text(cron, "cron", MAX_CRON_BYTES).strip()
    if not line:
        raise BadInput('cron is empty; write it as "minute hour day month weekday", say "0 9 * * *"')
    zone = check_text(time_zone, "time_zone", MAX_CRON_BYTES) if time_zone is not None else None
    return When(ScheduleSpec(cron_expressions=[line], time_zone_name=zone), f"cron {line} {zone or 'UTC'}")


def _by_interval(every: object) -> When:
    if not isinstance(every, timedelta) or not SHORTEST <= every <= LONGEST:
        raise BadInput(f"every must be a timedelta from one second to {LONGEST.days:,} days, not {shown(every)}")
    return When(ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]), f"every {every}")


def _at_once(at: object, now: datetime) -> When:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise BadInput(f"at must be a datetime with a time zone, not {shown(at)}")
    if at < now + AHEAD:
        raise BadInput(f"at must be at least {AHEAD.seconds} seconds ahead, not {at.isoformat()}; to run now, submit")
    if at > now + LONGEST:
        raise BadInput(f"at must be at most {LONGEST.days:,} days ahead, not {at.isoformat()}")
    due = at.astimezone(UTC)
    if due.microsecond:
        due = due.replace(microsecond=0) + timedelta(seconds=1)
    calendar = ScheduleCalendarSpec(
        second=[ScheduleRange(due.second)],
        minute=[ScheduleRange(due.minute)],
        hour=[ScheduleRange(due.hour)],
        day_of_month=[ScheduleRange(due.day)],
        month=[ScheduleRange(due.month)],
        year=[ScheduleRange(due.year)],
    )
    return When(ScheduleSpec(calendars=[calendar]), f"at {due.isoformat()}", once=True)
