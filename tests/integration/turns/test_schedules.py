"""Turns that start by Temporal's clock."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import ScheduleBackfill
from temporalio.common import WorkflowIDReusePolicy

from everturn import Agent, BadInput, ChatClient, MessageTooLarge, ScheduleExists, ScheduleNotFound, TurnSummary
from everturn.activities.payloads import WORKFLOW, TurnOutcome
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.client.request import make_scheduled
from everturn.hooks.points import HOOK_POINTS
from everturn.ids import workflow_id
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, eventually, make_agent
from tests.integration.turns.test_policies import running, stopped

LATER: dict[str, Any] = {"cron": "0 9 1 1 *"}


@asynccontextmanager
async def scheduled(lab: Lab, thread: str, text: str, **options: Any) -> AsyncIterator[str]:
    """A schedule that is there as long as the test needs it."""
    schedule_id = f"nightly-{uuid.uuid4().hex[:8]}"
    await lab.chat.schedule(schedule_id, thread, text, **{"agent": "agent", **options})
    try:
        yield schedule_id
    finally:
        await lab.chat.unschedule(schedule_id)


async def turns_of(lab: Lab, thread: str, number: int) -> list[TurnSummary]:
    """The thread's turns, oldest first, once there are so many that are over."""

    async def over() -> bool:
        listed = await lab.chat.list_turns(thread)
        return sum(1 for turn in listed if turn.ended_at is not None) >= number

    await eventually(over, f"{number} turns of {thread} are over")
    return (await lab.chat.list_turns(thread))[::-1]


async def test_each_firing_is_a_turn_of_its_own_and_all_hooks_see_that_it_was_scheduled(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[tuple[str, str, str]] = []

    def noting(point: str) -> Any:
        async def note(self: Any, *given: Any) -> None:
            context = given[-1]
            seen.append((context.request_id, point, context.trigger))

        return note

    points = [point for point in HOOK_POINTS if point not in ("before_tool_call", "after_tool_call")]
    points = [point for point in points if point not in ("on_chat_error", "classify_chat_error")]
    base = type("Noting", (Agent,), {point: noting(point) for point in points})
    async with start_lab(make_agent(scripted_server, base=base)) as lab:
        thread = lab.thread()
        given = {"every": timedelta(seconds=1), "body": {"why": "nightly"}, "tenant_id": "acme"}
        async with scheduled(lab, thread, "[[say text='good morning']] wake up", **given) as schedule_id:
            turns = await turns_of(lab, thread, 2)
            info = next(info for info in await listed(lab, schedule_id) if info.schedule_id == schedule_id)
        assert (info.thread_id, info.agent, info.when) == (thread, "agent", "every 0:00:01")
        first, second = turns[:2]
        for turn in (first, second):
            name, _, time = turn.request_id.rpartition("-20")
            assert name == schedule_id
            assert datetime.fromisoformat(f"20{time}") <= datetime.now(UTC)
            assert turn.status == "completed"
            result = await lab.chat.turn(turn.request_id).result(5)
            assert result.text == "good morning"
        assert first.request_id != second.request_id

        async def told() -> bool:
            return (second.request_id, "on_turn_end", "scheduled") in seen

        await eventually(told, "the last hook has run")
        assert {(point, trigger) for turn, point, trigger in seen if turn == first.request_id} == {
            (point, "scheduled") for point in points
        }
        messages = await lab.chat.messages(thread)
        assert [m.text for m in messages[:4]] == ["[[say text='good morning']] wake up", "good morning"] * 2


async def listed(lab: Lab, schedule_id: str) -> list[Any]:
    """All schedules, once Temporal's list has this one; it lags behind."""

    async def there() -> bool:
        return any(info.schedule_id == schedule_id for info in await lab.chat.schedules())

    await eventually(there, "the schedule is listed")
    return await lab.chat.schedules()


async def test_a_single_time_fires_once(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        due = datetime.now(UTC) + timedelta(seconds=2.5)
        async with scheduled(lab, thread, "[[say text=once]]", at=due) as schedule_id:
            (turn,) = await turns_of(lab, thread, 1)
            assert turn.status == "completed"
            assert datetime.fromisoformat(turn.submitted_at) >= due
            described = await lab.client.get_schedule_handle(workflow_id(schedule_id)).describe()
            assert described.schedule.state.remaining_actions == 0
            assert not described.info.next_action_times


async def test_a_scheduled_turn_takes_its_place_in_the_threads_queue(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        async with scheduled(lab, thread, "[[say text=tick]] wake up", **LATER) as schedule_id:
            first = await running(lab, thread)
            await lab.client.get_schedule_handle(workflow_id(schedule_id)).trigger()

            async def queued() -> bool:
                return [turn.status for turn in await lab.chat.list_turns(thread)] == ["queued", "running"]

            await eventually(queued, "the scheduled turn waits")
            await stopped(first)
            turn = (await turns_of(lab, thread, 2))[-1]
            assert (await lab.chat.turn(turn.request_id).result(5)).text == "tick"
            described = await lab.client.get_workflow_handle(workflow_id(turn.request_id)).describe()
            assert await described.static_summary() == f"{thread} · [[say text=tick]] wake up"


async def test_a_firing_that_is_repeated_is_the_same_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        new_year = datetime(2026, 1, 1, 9, tzinfo=UTC)
        around = ScheduleBackfill(new_year - timedelta(minutes=1), new_year + timedelta(minutes=1))
        text = f"[[say text=once]] {thread}"
        async with scheduled(lab, thread, text, **LATER) as schedule_id:
            await lab.client.get_schedule_handle(workflow_id(schedule_id)).backfill(around)
            (turn,) = await turns_of(lab, thread, 1)
        assert turn.request_id == f"{schedule_id}-2026-01-01T09:00:00Z"
        nothing = dict.fromkeys(("body", "principal", "tenant_id", "metadata"))
        given = make_scheduled(thread, text, agent="agent", policy="queue", **nothing)
        again = await lab.client.start_workflow(  # as Temporal does where it has forgotten the first one
            WORKFLOW,
            given,
            id=workflow_id(turn.request_id),
            task_queue=lab.task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            result_type=TurnOutcome,
        )
        outcome = await again.result()
        assert (outcome.request_id, outcome.status, outcome.text) == (turn.request_id, "completed", "once")
        assert len(lab.requests(thread)) == 1
        assert len(await lab.chat.messages(thread)) == 2


BAD: list[tuple[dict[str, Any], str]] = [
    ({"cron": "every morning"}, "every morning"),
    ({"cron": "99 * * * *"}, "99"),
    ({"cron": "  "}, "cron"),
    ({"cron": 5}, "cron"),
    ({"cron": "0 9 * * *", "time_zone": "Mars/Olympus"}, "Mars/Olympus"),
    ({"every": timedelta(seconds=1), "time_zone": "Europe/Berlin"}, "time_zone"),
    ({"every": timedelta(milliseconds=10)}, "every"),
    ({"every": 60}, "every"),
    ({"at": datetime.now(UTC) - timedelta(hours=1)}, "ahead"),
    ({"at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001 - the case
    ({"at": "tomorrow"}, "at"),
    ({}, "one of cron, every and at"),
    ({**LATER, "every": timedelta(hours=1)}, "cron and every"),
    ({**LATER, "policy": "sometimes"}, "policy"),
    ({**LATER, "schedule_id": ""}, "schedule_id"),
    ({**LATER, "schedule_id": "x" * 190}, "schedule_id"),
    ({**LATER, "thread_id": "a\nb"}, "thread_id"),
    ({**LATER, "message": ""}, "empty"),
    ({**LATER, "agent": ""}, "agent"),
]


async def test_what_cannot_be_scheduled_is_named_and_no_schedule_is_left(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server), workers=0) as lab:
        for number, (change, named) in enumerate(BAD):
            given = {"schedule_id": f"{lab.task_queue}-{number}", "thread_id": "t", "message": "hi", "agent": "agent"}
            wanted: dict[str, Any] = {**given, **change}
            with pytest.raises(BadInput, match=named) as caught:
                await lab.chat.schedule(
                    wanted.pop("schedule_id"), wanted.pop("thread_id"), wanted.pop("message"), **wanted
                )
            assert len(str(caught.value)) < 400, str(caught.value)
            with pytest.raises(ScheduleNotFound):
                await lab.chat.unschedule(given["schedule_id"])
        with pytest.raises(MessageTooLarge, match="schedule"):
            await lab.chat.schedule("large", "t", "x" * 300_000, agent="agent", **LATER)
        silent = await ChatClient.connect(lab.client, task_queue=lab.task_queue, history_previews=False)
        with pytest.raises(BadInput, match="history_previews"):
            await silent.schedule("silent", "t", "hi", agent="agent", **LATER)


async def test_an_id_that_is_in_use_and_one_that_is_not_are_told(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server), workers=0) as lab:
        async with scheduled(lab, "t", "hi", cron="0 9 * * MON-FRI", time_zone="Europe/Berlin") as schedule_id:
            with pytest.raises(ScheduleExists, match=schedule_id):
                await lab.chat.schedule(schedule_id, "t", "hi", agent="agent", **LATER)
            (info,) = [info for info in await listed(lab, schedule_id) if info.schedule_id == schedule_id]
            assert info.when == "cron 0 9 * * MON-FRI Europe/Berlin"
            assert info.next_at is not None
            assert datetime.fromisoformat(info.next_at) > datetime.now(UTC)
        with pytest.raises(ScheduleNotFound, match=schedule_id):
            await lab.chat.unschedule(schedule_id)
