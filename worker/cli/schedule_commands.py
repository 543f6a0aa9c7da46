"""What `everturn schedule` does."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

from everturn.errors import BadInput
from everturn.turns import Principal, ScheduleInfo
from everturn.worker.cli.calls import STANDARD_INPUT, connected, json_object, print_text
from everturn.worker.cli.options import Places
from everturn.worker.cli.running import DONE
from everturn.worker.cli.tables import table

_SPAN: Final = re.compile(r"(?=.)(?:(\d{1,8})d)?(?:(\d{1,8})h)?(?:(\d{1,8})m)?(?:(\d{1,8})s)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Plan:
    """What `everturn schedule create` was asked for."""

    schedule_id: str
    thread_id: str
    message: str
    agent: str
    cron: str | None = None
    every: str | None = None
    at: str | None = None
    time_zone: str | None = None
    policy: str = "queue"
    body: str | None = None
    user: str | None = None


async def create(places: Places, plan: Plan, as_json: bool) -> int:
    every = span(plan.every) if plan.every is not None else None
    at = moment(plan.at) if plan.at is not None else None
    message = sys.stdin.read() if plan.message == STANDARD_INPUT else plan.message
    async with connected(places) as chat:
        info = await chat.schedule(
            plan.schedule_id,
            plan.thread_id,
            message,
            agent=plan.agent,
            cron=plan.cron,
            every=every,
            at=at,
            time_zone=plan.time_zone,
            body=json_object(plan.body, "--body"),
            principal=Principal(id=plan.user) if plan.user else None,
            policy=plan.policy,
        )
    print_text(json.dumps(asdict(info)) if as_json else f"{info.schedule_id}: {info.when}")
    return DONE


async def show_all(places: Places, as_json: bool) -> int:
    async with connected(places) as chat:
        found = await chat.schedules()
    print_text(json.dumps([asdict(info) for info in found], ensure_ascii=False) if as_json else schedules_text(found))
    return DONE


async def remove(places: Places, schedule_id: str, as_json: bool) -> int:
    async with connected(places) as chat:
        await chat.unschedule(schedule_id)
    print_text(json.dumps({"schedule_id": schedule_id, "removed": True}) if as_json else "removed")
    return DONE


def schedules_text(found: Sequence[ScheduleInfo]) -> str:
    """A line for each schedule."""
    rows = [("SCHEDULE", "THREAD", "AGENT", "WHEN", "NEXT", "LAST TURN")]
    for info in found:
        last = info.recent[-1] if info.recent else "none"
        rows.append((info.schedule_id, info.thread_id, info.agent, info.when, info.next_at or "never", last))
    return table(rows)


def span(text: str) -> timedelta:
    """Raises BadInput for anything but days, hours, minutes and seconds, as in 1h30m."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise BadInput(f"--every {text!r} is no span of time; write it as 30s, 15m, 1h30m or 7d")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def moment(text: str) -> datetime:
    """Raises BadInput for anything but a date with a time; without an offset it is local time."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise BadInput(f"--at {text!r} is no time; write it as 2026-01-31T09:00 or 2026-01-31T09:00+01:00") from error
