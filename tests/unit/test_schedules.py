"""When a schedule fires: what the client takes, and how the command line writes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from temporalio.client import ScheduleRange

from everturn.client.when import make_when
from everturn.errors import BadInput
from everturn.turns import ScheduleInfo
from everturn.worker.cli.schedule_commands import moment, schedules_text, span

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def when(**given: Any) -> Any:
    return make_when(*(given.get(name) for name in ("cron", "every", "at", "time_zone")), NOW)


def test_a_single_time_is_a_second_of_utc_and_never_early() -> None:
    made = when(at=datetime(2026, 3, 31, 23, 59, 59, 1, tzinfo=timezone(timedelta(hours=-2))))
    assert (made.text, made.once) == ("at 2026-04-01T02:00:00+00:00", True)
    (calendar,) = made.spec.calendars
    assert [calendar.year, calendar.month, calendar.day_of_month] == [[ScheduleRange(n)] for n in (2026, 4, 1)]
    assert [calendar.hour, calendar.minute, calendar.second] == [[ScheduleRange(n)] for n in (2, 0, 0)]


@pytest.mark.parametrize(
    "at", [NOW + timedelta(seconds=1), NOW + timedelta(days=3661), datetime.max.replace(tzinfo=UTC), NOW.isoformat()]
)
def test_a_time_that_cannot_come_is_named(at: Any) -> None:
    with pytest.raises(BadInput, match="at must"):
        when(at=at)


@pytest.mark.parametrize("every", [timedelta(0), timedelta(seconds=-5), timedelta.max, 5])
def test_an_interval_that_cannot_be_is_named(every: Any) -> None:
    with pytest.raises(BadInput, match="every must"):
        when(every=every)


def test_cron_keeps_its_time_zone() -> None:
    made = when(cron=" 0 9 * * * ", time_zone="Europe/Berlin")
    assert (made.text, made.once) == ("cron 0 9 * * * Europe/Berlin", False)
    assert (made.spec.cron_expressions, made.spec.time_zone_name) == (["0 9 * * *"], "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("15m", 900), ("1h30m", 5400), ("7d", 604800), ("1d1h1m1s", 90061), (" 5s ", 5)]
)
def test_a_span_of_time_is_read(text: str, seconds: int) -> None:
    assert span(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "5", "1.5h", "m", "30m1h", "-5s", "soon", "999999999s", "５s"])
def test_what_is_no_span_of_time_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="--every"):
        span(text)


def test_a_moment_without_an_offset_is_local_time() -> None:
    assert moment("2026-01-31T09:00+01:00") == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert moment("2026-01-31T09:00") == datetime(2026, 1, 31, 9).astimezone()
    with pytest.raises(BadInput, match="--at"):
        moment("tomorrow")


def test_schedules_are_listed_in_columns() -> None:
    found = [
        ScheduleInfo("nightly", "t", "shop", "cron 0 9 * * * UTC", "2026-03-02T09:00:00+00:00", ["n-1", "n-2"]),
        ScheduleInfo("once", "t", "shop", "at 2026-01-01T00:00:00+00:00"),
    ]
    heading, first, second = schedules_text(found).splitlines()
    assert heading.split()[:3] == ["SCHEDULE", "THREAD", "AGENT"]
    assert first.endswith("2026-03-02T09:00:00+00:00  n-2")
    assert second.split()[-2:] == ["never", "none"]
