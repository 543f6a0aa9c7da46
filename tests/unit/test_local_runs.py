"""Which executions of a local activity join one that runs already."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from temporalio import activity
from temporalio.testing import ActivityEnvironment

from everturn.activities import local_runs
from everturn.activities.local_runs import LocalRuns, Run

INFO = replace(ActivityEnvironment.default_info(), is_local=True)


class Work:
    """Counts its runs; each ends when it may."""

    def __init__(self) -> None:
        self.runs = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.runs += 1
        number = self.runs
        await self.may_end.wait()
        return number


def joined(runs: LocalRuns, work: Work, args: list[object], info: activity.Info = INFO) -> Run:
    return runs.joined(info, args, work)


async def test_the_same_activity_with_the_same_arguments_joins_and_others_do_not() -> None:
    runs, work = LocalRuns(), Work()
    first = joined(runs, work, [1])
    await asyncio.sleep(0)
    assert joined(runs, work, [1]) is first
    others = [
        joined(runs, work, [2]),
        joined(runs, work, [1], replace(INFO, attempt=2)),
        joined(runs, work, [1], replace(INFO, activity_type="another")),
        joined(runs, work, [1], replace(INFO, workflow_run_id="another")),
    ]
    work.may_end.set()
    assert await first.task == 1
    assert sorted([await run.task for run in others]) == [2, 3, 4, 5]


async def test_what_ended_for_somebody_is_not_joined_any_more() -> None:
    runs, work = LocalRuns(), Work()
    work.may_end.set()
    wanted = joined(runs, work, [1])
    wanted.waiting = 1
    assert await wanted.task == 1
    assert await joined(runs, work, [1]).task == 2


async def test_what_ended_for_nobody_is_kept_for_one_who_comes() -> None:
    runs, work = LocalRuns(), Work()
    work.may_end.set()
    await joined(runs, work, [1]).task
    assert await joined(runs, work, [1]).task == 1
    assert await joined(runs, work, [1]).task == 2


async def test_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_runs, "KEEP", 0.01)
    runs, work = LocalRuns(), Work()
    work.may_end.set()
    await joined(runs, work, [1]).task
    await asyncio.sleep(0.1)
    assert await joined(runs, work, [1]).task == 2


async def test_a_worker_that_stops_cancels_what_is_left_and_waits_no_longer_than_it_must(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_runs, "CLOSE", 0.05)
    runs, work = LocalRuns(), Work()
    left = joined(runs, work, [1])

    async def stubborn() -> None:
        while not work.may_end.is_set():
            try:
                await work.may_end.wait()
            except asyncio.CancelledError:
                continue

    unruly = runs.joined(INFO, [2], stubborn)
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await runs.close()
    assert left.task.cancelled()
    assert not unruly.task.done()
    work.may_end.set()
    await unruly.task
