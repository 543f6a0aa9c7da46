"""The arrows of a turn: one method for each activity, of the same name, with its timeouts and what the Web UI shows.

Also the place where a cancellation reaches whatever is running: every arrow that a cancel may cut is in flight here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

from everturn.activities.payloads import (
    BeginInput,
    Begun,
    CallDecision,
    CallDone,
    CallInput,
    CallRef,
    CompactDone,
    CompactInput,
    ErrorInput,
    FinishInput,
    HookInput,
    Predecessor,
    StepDone,
    StepInput,
    StepVerdict,
    TurnDecision,
    TurnOutcome,
    activity_name,
)
from everturn.activities.wait_payloads import WaitAnswer, WaitInput
from everturn.turns import TurnError
from everturn.workflows import timeouts

T = TypeVar("T")
SUMMARY_LENGTH = 120


class Stopped(Exception):
    """The turn was cancelled; whatever was running has been stopped."""


class Arrows:
    """Calls activities for one turn. After `stop()`, arrows that can be cut raise Stopped instead of running."""

    def __init__(self) -> None:
        self._in_flight: set[workflow.ActivityHandle[Any]] = set()
        self.stopping = False

    @property
    def busy(self) -> bool:
        return bool(self._in_flight)

    def stop(self) -> None:
        """From now on nothing new is started."""
        self.stopping = True

    def cancel_in_flight(self) -> None:
        """Asks Temporal to cancel what is running."""
        for handle in self._in_flight:
            handle.cancel()

    async def begin(self, given: BeginInput) -> Begun:
        return await _local("begin", given, Begun)

    async def check_predecessor(self, given: Predecessor) -> bool:
        return await _local("check_predecessor", given, bool)

    async def finish(self, given: FinishInput) -> TurnOutcome:
        return await _local(
            "finish", given, TurnOutcome, timeouts.FINISH_SCHEDULE_TO_CLOSE, timeouts.FINISH_RETRY, summary=given.status
        )

    async def interrupt(self, request_id: str) -> bool:
        return await _local(
            "interrupt", request_id, bool, timeouts.INTERRUPT_TIMEOUT, timeouts.ONCE, timeouts.INTERRUPT_TIMEOUT
        )

    async def before_turn(self, given: HookInput) -> TurnDecision:
        return await self._hook("before_turn", given, TurnDecision)

    async def before_step(self, given: HookInput) -> None:
        await self._hook("before_step", given)

    async def before_tool_call(self, given: CallInput, call: CallRef) -> CallDecision:
        return await self._hook("before_tool_call", given, CallDecision, call.label)

    async def after_tool_call(self, given: CallInput, call: CallRef) -> None:
        await self._hook("after_tool_call", given, summary=call.label)

    async def open_wait(self, given: WaitInput) -> bool:
        return await _local("open_wait", given, bool)

    async def resolve_wait(self, given: WaitAnswer, call: CallRef) -> CallDecision:
        return await _local("resolve_wait", given, CallDecision, summary=f"{call.label} · {given.answer}")

    async def on_step_finish(self, given: HookInput) -> StepVerdict:
        return await self._hook("on_step_finish", given, StepVerdict)

    async def on_chat_error(self, given: ErrorInput) -> TurnError:
        """A regular activity: a cancel that the hook itself asks for is heard before the hook's end."""
        shown: TurnError = await workflow.execute_activity(
            activity_name("on_chat_error"),
            given,
            result_type=TurnError,
            start_to_close_timeout=timeouts.HOOK_START_TO_CLOSE,
            schedule_to_close_timeout=timeouts.HOOK_SCHEDULE_TO_CLOSE,
            heartbeat_timeout=timeouts.HEARTBEAT_TIMEOUT,
            retry_policy=timeouts.HOOK_RETRY,
            summary=_short(given.error.type),
        )
        return shown

    async def on_chat_response(self, given: HookInput) -> None:
        await self._afterwards("on_chat_response", given)

    async def on_turn_end(self, given: HookInput) -> None:
        await self._afterwards("on_turn_end", given)

    async def model_step(self, given: StepInput, model: str) -> StepDone:
        return await self._remote(
            "model_step",
            given,
            StepDone,
            start_to_close=timeouts.STEP_START_TO_CLOSE,
            schedule_to_close=timeouts.STEP_SCHEDULE_TO_CLOSE,
            retry=timeouts.STEP_RETRY,
            summary=f"step {given.step} · {model}",
        )

    async def compact(self, given: CompactInput) -> bool:
        """False if the thread could not be shortened, also when summarising it failed."""
        try:
            done = await self._remote(
                "compact",
                given,
                CompactDone,
                start_to_close=timeouts.STEP_START_TO_CLOSE,
                schedule_to_close=timeouts.STEP_SCHEDULE_TO_CLOSE,
                retry=timeouts.COMPACT_RETRY,
                summary="summarise the middle of the thread",
            )
        except ActivityError as error:
            workflow.logger.warning("the thread could not be compacted", exc_info=error)
            return False
        return done.shortened

    async def run_tool(self, given: CallInput, call: CallRef) -> CallDone:
        """A quick tool runs within the workflow task: without a task, three events and a round trip of its own."""
        one_run = timedelta(seconds=call.timeout) + timeouts.TOOL_GRACE
        whole = one_run * (call.retries + 2) + timeouts.STORE_SCHEDULE_TO_CLOSE
        if call.quick:
            return await self._cuttable("run_tool", given, CallDone, one_run, whole, timeouts.TOOL_RETRY, call.label)
        return await self._remote(
            "run_tool",
            given,
            CallDone,
            start_to_close=one_run,
            schedule_to_close=whole,
            retry=timeouts.TOOL_RETRY,
            summary=call.label,
        )

    async def _hook(self, name: str, given: object, result: type[T] | None = None, summary: str | None = None) -> T:
        limits = (timeouts.HOOK_START_TO_CLOSE, timeouts.HOOK_SCHEDULE_TO_CLOSE, timeouts.HOOK_RETRY)
        return await self._cuttable(name, given, result, *limits, summary)

    async def _cuttable(
        self,
        name: str,
        given: object,
        result: type[T] | None,
        start_to_close: timedelta,
        schedule_to_close: timedelta,
        retry: RetryPolicy,
        summary: str | None,
    ) -> T:
        """A local activity that a cancel may cut."""
        if self.stopping:
            raise Stopped
        handle: workflow.ActivityHandle[Any] = workflow.start_local_activity(
            activity_name(name),
            given,
            result_type=result,
            start_to_close_timeout=start_to_close,
            schedule_to_close_timeout=schedule_to_close,
            retry_policy=retry,
            local_retry_threshold=timeouts.HAND_OVER,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=_short(summary),
        )
        value: T = await self._wait(handle)
        return value

    async def _afterwards(self, name: str, given: HookInput) -> None:
        await workflow.execute_local_activity(
            activity_name(name),
            given,
            start_to_close_timeout=timeouts.HOOK_START_TO_CLOSE,
            schedule_to_close_timeout=timeouts.HOOK_SCHEDULE_TO_CLOSE,
            retry_policy=timeouts.AFTERWARDS_RETRY,
            local_retry_threshold=timeouts.HAND_OVER,
        )

    async def _remote(
        self,
        name: str,
        given: object,
        result: type[T],
        *,
        start_to_close: timedelta,
        schedule_to_close: timedelta,
        retry: RetryPolicy,
        summary: str,
    ) -> T:
        if self.stopping:
            raise Stopped
        handle: workflow.ActivityHandle[Any] = workflow.start_activity(
            activity_name(name),
            given,
            result_type=result,
            start_to_close_timeout=start_to_close,
            schedule_to_close_timeout=schedule_to_close,
            heartbeat_timeout=timeouts.HEARTBEAT_TIMEOUT,
            retry_policy=retry,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=_short(summary),
        )
        value: T = await self._wait(handle)
        return value

    async def _wait(self, handle: workflow.ActivityHandle[Any]) -> Any:
        self._in_flight.add(handle)
        try:
            return await handle
        except FailureError as error:
            # A worker that died while its activity was being cancelled shows as a timeout: the turn stops all the same.
            if self.stopping or is_cancelled_exception(error):
                raise Stopped from error
            raise
        finally:
            self._in_flight.discard(handle)


async def _local(
    name: str,
    given: object,
    result: type[T],
    schedule_to_close: timedelta = timeouts.STORE_SCHEDULE_TO_CLOSE,
    retry: RetryPolicy = timeouts.STORE_RETRY,
    start_to_close: timedelta = timeouts.STORE_START_TO_CLOSE,
    summary: str | None = None,
) -> T:
    value: T = await workflow.execute_local_activity(
        activity_name(name),
        given,
        result_type=result,
        start_to_close_timeout=start_to_close,
        schedule_to_close_timeout=schedule_to_close,
        retry_policy=retry,
        summary=_short(summary),
    )
    return value


def _short(summary: str | None) -> str | None:
    if summary is None or len(summary) <= SUMMARY_LENGTH:
        return summary
    return summary[: SUMMARY_LENGTH - 1] + "…"
