"""Turns that start by the clock: Temporal's schedules, each firing of which is a turn of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from temporalio.client import (
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleListDescription,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleState,
)
from temporalio.service import RPCError, RPCStatusCode

from everturn.client.connected import Connected
from everturn.client.request import check_schedule_id, make_scheduled
from everturn.client.when import When, make_when
from everturn.connection import place_of, temporal_error
from everturn.errors import BadInput, ScheduleExists, ScheduleNotFound
from everturn.ids import request_id_of, workflow_id
from everturn.messages import UserMessage
from everturn.policies import Debounce
from everturn.turns import Principal, ScheduleInfo

CATCH_UP: Final = timedelta(hours=1)
"""What came due while Temporal was down fires late, up to so long ago; older times are skipped. Temporal's own default
of a year would answer a day's outage of a schedule by the minute with 1,440 turns."""
FACTS_MEMO: Final = "everturn_schedule"


class Scheduling(Connected):
    """Schedules turns."""

    async def schedule(  # noqa: PLR0913 - when, and all that `submit` takes
        self,
        schedule_id: str,
        thread_id: str,
        message: UserMessage,
        *,
        agent: str,
        cron: str | None = None,
        every: timedelta | None = None,
        at: datetime | None = None,
        time_zone: str | None = None,
        body: Mapping[str, Any] | None = None,
        principal: Principal | None = None,
        tenant_id: str | None = None,
        policy: str | Debounce = "queue",
        metadata: Mapping[str, Any] | None = None,
    ) -> ScheduleInfo:
        """Submits the message again and again, or once, by Temporal's clock, with no client alive.

        cron: "minute hour day month weekday", in UTC or in `time_zone` (as "Europe/Berlin"). every: from one second.
        at: once, a datetime with a time zone. The rest is as of `submit`; hooks see the trigger "scheduled". Each
        firing is a turn with the request_id "<schedule_id>-<time>", and takes its place in the thread's queue.

        The message is kept in Temporal: it may have 256 KB, and `history_previews` must not be off. Raises BadInput,
        ScheduleExists for an id that is in use, TemporalUnavailable.
        """
        self._check_previews()
        when = make_when(cron, every, at, time_zone, datetime.now(UTC))
        check_schedule_id(schedule_id)
        turn = make_scheduled(
            thread_id,
            message,
            agent=agent,
            body=body,
            principal=principal,
            tenant_id=tenant_id,
            policy=policy,
            metadata=metadata,
        )
        action = await self._temporal.scheduled_start(turn, schedule_id)
        plan = Schedule(
            action=action,
            spec=when.spec,
            # Temporal starts them however many still run: the thread's queue puts them in order.
            policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL, catchup_window=CATCH_UP),
            state=ScheduleState(limited_actions=when.once, remaining_actions=int(when.once)),
        )
        info = ScheduleInfo(schedule_id, thread_id, agent, when.text)
        await self._create(plan, info, when)
        return info

    async def unschedule(self, schedule_id: str) -> None:
        """Ends a schedule; turns that it has started go on. Raises ScheduleNotFound, TemporalUnavailable."""
        handle = self._temporal.client.get_schedule_handle(workflow_id(check_schedule_id(schedule_id)))
        try:
            await handle.delete(rpc_timeout=self._temporal.rpc_timeout)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                raise ScheduleNotFound(schedule_id) from error
            raise temporal_error(error, place_of(self._temporal.client)) from error

    async def schedules(self) -> list[ScheduleInfo]:
        """The schedules of this namespace, by id. A change may take a moment to show. Raises TemporalUnavailable."""
        found: list[ScheduleInfo] = []
        try:
            listed = await self._temporal.client.list_schedules(rpc_timeout=self._temporal.rpc_timeout)
            async for described in listed:
                facts = await described.memo_value(FACTS_MEMO, None)
                if isinstance(facts, dict):
                    found.append(_info(facts, described))
        except RPCError as error:
            raise temporal_error(error, place_of(self._temporal.client)) from error
        return sorted(found, key=lambda info: info.schedule_id)

    async def _create(self, plan: Schedule, info: ScheduleInfo, when: When) -> None:
        facts = {name: getattr(info, name) for name in ("schedule_id", "thread_id", "agent", "when")}
        try:
            await self._temporal.client.create_schedule(
                workflow_id(info.schedule_id), plan, memo={FACTS_MEMO: facts}, rpc_timeout=self._temporal.rpc_timeout
            )
        except ScheduleAlreadyRunningError as error:
            raise ScheduleExists(info.schedule_id) from error
        except RPCError as error:
            if error.status == RPCStatusCode.INVALID_ARGUMENT:
                raise BadInput(f"the schedule ({when.text}) cannot be used: {error.message}") from error
            raise temporal_error(error, place_of(self._temporal.client)) from error

    def _check_previews(self) -> None:
        if not self._settings.history_previews:
            raise BadInput(
                "a schedule keeps its message in Temporal, and history_previews is off; "
                "leave it on and encrypt what is written there with a data converter"
            )


def _info(facts: Mapping[str, Any], described: ScheduleListDescription) -> ScheduleInfo:
    info = ScheduleInfo(**facts)
    if described.info is None:
        return info
    due = next(iter(described.info.next_action_times), None)
    started = [
        request_id_of(result.action.workflow_id)
        for result in described.info.recent_actions
        if isinstance(result.action, ScheduleActionExecutionStartWorkflow)
    ]
    return dataclasses.replace(info, next_at=due.isoformat() if due else None, recent=started)
