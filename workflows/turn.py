"""The chat turn as a Temporal workflow."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from everturn.activities.payloads import (
    WORKFLOW,
    BeginInput,
    Begun,
    CancelRequest,
    ErrorInput,
    FinishInput,
    Predecessor,
    TurnInput,
    TurnOutcome,
    Unstored,
)
from everturn.activities.wait_payloads import Approval, ClientResult, Denial
from everturn.ids import request_id_of
from everturn.search_attributes import STATUS
from everturn.turns import TurnError
from everturn.workflows.arrows import Arrows, Stopped
from everturn.workflows.failing import failed_end, is_refused, unfinished
from everturn.workflows.failures import BUGS
from everturn.workflows.last_words import ask_to_show, tell_the_end
from everturn.workflows.loop import Loop, LoopEnd
from everturn.workflows.timeouts import QUEUE_CHECK_FIRST, QUEUE_CHECK_MAX
from everturn.workflows.view import TurnView
from everturn.workflows.waits import Waits


@workflow.defn(
    name=WORKFLOW,
    sandboxed=False,
    failure_exception_types=BUGS,
)
class TurnWorkflow:
    """One chat turn.

    1. `begin` records the turn and takes its thread, or queues: a thread has at most one running turn.
    2. `before_turn` may configure or block it: a blocked turn calls no model.
    3. The loop: model steps, each with its tool calls side by side: every step and call is stored once.
    4. `finish` stores the answer and frees the thread: every ending passes it, and none twice.
    5. `on_chat_response`, `on_turn_end`: they see the stored result and cannot change it.

    A cancel may come at any moment: what runs is stopped, and the turn still passes 4 and 5. Any exception is a failure
    of the turn, never of the workflow task. The code is our own and deterministic (histories are replayed in tests),
    so it runs without the sandbox and its third of the CPU.
    """

    @workflow.init
    def __init__(self, turn: TurnInput) -> None:
        self._turn = _fired(turn) if turn.trigger == "scheduled" else turn
        self._arrows = Arrows()
        self._view = TurnView()
        self._waits = Waits(self._arrows, self._view)
        self._begun: Begun | None = None
        self._over = False
        self._is_stored = True
        self._woken = False
        self._cancel: CancelRequest | None = None
        self._interrupts: list[asyncio.Task[None]] = []

    @workflow.run
    async def run(self, turn: TurnInput) -> TurnOutcome:  # noqa: ARG002 - workflow.init has taken it
        """Ends with the outcome; a turn of status error or dropped fails the workflow and has it in the details."""
        conduct = asyncio.create_task(self._conduct())
        while True:
            try:
                outcome = await asyncio.shield(conduct)
            except asyncio.CancelledError:
                if conduct.cancelled():
                    raise
                self._request_cancel(CancelRequest("cancelled in Temporal"))
                continue
            break
        self._over = True
        await workflow.wait_condition(workflow.all_handlers_finished)
        if outcome.error is not None and outcome.status in ("error", "dropped"):
            raise ApplicationError(str(outcome.error), outcome, type=outcome.error.type, non_retryable=True)
        return outcome

    @workflow.signal(description="Stops the turn: what runs is cut, what was said is kept.")
    def cancel_chat(self, request: CancelRequest) -> None:
        self._request_cancel(request)

    @workflow.signal(description="The turn before this one in the thread is over.")
    def your_turn(self) -> None:
        self._woken = True

    @workflow.update(description="Waits until the turn has its thread, a place in the queue, or was refused.")
    async def admission(self) -> Begun:
        await workflow.wait_condition(lambda: self._begun is not None or self._over)
        if self._begun is None:
            raise ApplicationError("the turn was not admitted", type="NotAdmitted", non_retryable=True)
        return self._begun

    @workflow.update(description="Lets a tool call run that waits for approval.")
    async def approve(self, given: Approval) -> None:
        await self._waits.approve(given)

    @approve.validator
    def _check_approve(self, given: Approval) -> None:
        self._waits.check(given.tool_call_id, "approval")

    @workflow.update(description="Refuses a tool call that waits for approval.")
    async def deny(self, given: Denial) -> None:
        await self._waits.deny(given)

    @deny.validator
    def _check_deny(self, given: Denial) -> None:
        self._waits.check(given.tool_call_id, "approval")

    @workflow.update(description="The result of a tool that the caller's front end has run.")
    async def submit_tool_result(self, given: ClientResult) -> None:
        await self._waits.take_result(given)

    @submit_tool_result.validator
    def _check_submit_tool_result(self, given: ClientResult) -> None:
        self._waits.check(given.tool_call_id, "client_tool")

    @workflow.query(description="The turn as it stands, for clients without the store.")
    def headline(self) -> str:
        return self._view.headline

    async def _conduct(self) -> TurnOutcome:
        end = await self._until_end()
        await self._settle_interrupts()
        if end.error is not None:
            end = await self._shown(end)
        if end.foreign:
            return self._unstored(end)
        if self._arrows.stopping and end.status == "completed":  # its last step was faster than the accepted cancel
            end = LoopEnd("aborted", "cancelled")
        outcome = await self._finished(end)
        self._view.ended(outcome)
        if self._turn.indexed:
            workflow.upsert_search_attributes([STATUS.value_set(outcome.status)])  # pyright: ignore
        await self._afterwards(outcome)
        return outcome

    async def _until_end(self) -> LoopEnd:
        """Everything before `finish`: one value for each way in which a turn can end."""
        admitted = False
        try:
            begun = await self._admit()
            if begun.outcome != "run":
                return _refused(begun)
            admitted = True
            return await Loop(self._turn, begun, self._arrows, self._waits, self._view).run()
        except Stopped:
            return LoopEnd("aborted", "cancelled")
        except FailureError as error:
            return failed_end(error, admitted=admitted)
        except Exception as error:  # a bug of ours must end the turn and free the thread, not wedge them
            workflow.logger.exception("the turn failed inside its workflow")
            return LoopEnd("error", "error", TurnError("internal", f"{type(error).__name__}: {error}"), "turn")

    async def _finished(self, end: LoopEnd) -> TurnOutcome:
        """An ending that the store refuses is stored without its message; what cannot be stored at all, the caller is
        told."""
        try:
            return await self._finish(end)
        except FailureError as error:
            workflow.logger.warning("the turn's ending could not be stored", exc_info=error)
            failed, refused = unfinished(end, error), is_refused(error)
        if failed is not end:
            failed = await self._shown(failed)
        if refused:
            try:
                return await self._finish(failed, without_message=True)
            except FailureError as error:
                workflow.logger.warning("the turn's ending could not be stored without a message", exc_info=error)
        self._is_stored = False
        return self._unstored(failed)

    async def _finish(self, end: LoopEnd, *, without_message: bool = False) -> TurnOutcome:
        given = FinishInput(
            request_id=self._turn.request_id,
            status=end.status,
            stop_reason=end.stop_reason,
            error=end.error,
            text=end.text,
            reason=self._cancel.reason if self._cancel else None,
            previews=self._turn.previews,
            stage=end.stage if end.status == "error" else None,
            classification=end.classification,
            turn=None if self._begun else self._facts(),
            without_message=without_message,
            whole_text=not self._turn.has_store,
        )
        return await self._arrows.finish(given)

    def _unstored(self, end: LoopEnd) -> TurnOutcome:
        return TurnOutcome(self._turn.request_id, self._turn.thread_id, end.status, end.stop_reason, error=end.error)

    async def _admit(self) -> Begun:
        """Returns when the thread is this turn's, or when it is clear that the turn will never run."""
        check = QUEUE_CHECK_FIRST
        while True:
            begun = self._begun = await self._begin()
            if begun.hold_until is not None:
                await self._wait_for_messages(begun.hold_until)
            elif begun.outcome != "queued" or begun.behind is None:
                return begun
            else:
                self._view.queued(begun.behind)
                await self._wait_for_thread(begun.behind, check)
                check = min(check * 2, QUEUE_CHECK_MAX)

    async def _begin(self) -> Begun:
        if self._arrows.stopping and self._begun is not None:
            raise Stopped
        info = workflow.info()
        started = info.workflow_start_time.timestamp()
        withdrawn = self._arrows.stopping or workflow.cancellation_reason() is not None
        return await self._arrows.begin(BeginInput(self._turn, info.run_id, started, withdrawn, workflow.time()))

    async def _wait_for_messages(self, until: float) -> None:
        """A debounced turn sleeps; `begin` then knows whether further messages have come and prolong its wait."""
        self._view.holding()
        seconds = max(until - workflow.time(), 0.0)
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self._woken or self._arrows.stopping, timeout=timedelta(seconds=seconds)
            )
        self._woken = False
        if self._arrows.stopping:
            raise Stopped

    async def _wait_for_thread(self, behind: str, check: timedelta) -> None:
        try:
            await workflow.wait_condition(lambda: self._woken or self._arrows.stopping, timeout=check)
        except TimeoutError:
            if await self._arrows.check_predecessor(Predecessor(self._turn.request_id, behind)):
                if behind == self._turn.after:
                    self._turn = replace(self._turn, after=None)
                return
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(self._turn)
        self._woken = False
        if self._arrows.stopping:
            raise Stopped

    def _request_cancel(self, request: CancelRequest) -> None:
        if self._cancel is not None:
            return
        self._cancel = request
        self._arrows.stop()
        if self._arrows.busy:
            self._interrupts.append(asyncio.create_task(self._interrupt()))

    async def _interrupt(self) -> None:
        """First the short way, through this process, in milliseconds; then Temporal's own, which always arrives."""
        try:
            await self._arrows.interrupt(self._turn.request_id)
        except FailureError as error:
            workflow.logger.warning("the running step was not reached in this process", exc_info=error)
        self._arrows.cancel_in_flight()

    async def _settle_interrupts(self) -> None:
        if self._interrupts:
            await asyncio.gather(*self._interrupts)

    async def _shown(self, end: LoopEnd) -> LoopEnd:
        """The error as the author's on_chat_error wants it shown; asked once, whichever stage failed.

        The hook may also cancel the turn, which then ends as aborted.
        """
        names = self._points("on_chat_error")
        if names == [] or end.error is None or end.status != "error":
            return end
        given = ErrorInput(
            self._turn.request_id,
            self._turn.agent,
            names,
            end.stage,
            end.error,
            end.classification,
            turn=self._facts(),
        )
        cancelled_before = self._arrows.stopping
        shown = await ask_to_show(self._arrows, given)
        if self._arrows.stopping and not cancelled_before:
            return LoopEnd("aborted", "cancelled")
        return replace(end, error=shown)

    async def _afterwards(self, outcome: TurnOutcome) -> None:
        unstored = None if self._is_stored else Unstored(self._facts(), outcome)
        points = self._begun.points if self._begun else None
        answered = outcome.message_id is not None
        await tell_the_end(
            self._arrows, self._turn.request_id, self._turn.agent, points, answered=answered, unstored=unstored
        )

    def _points(self, point: str) -> list[str] | None:
        """The names of a point's hooks; None if the turn could not begin, so that its manifest is not known."""
        return self._begun.points.get(point, []) if self._begun else None

    def _facts(self) -> TurnInput:
        return replace(self._turn, parts=None)


def _fired(turn: TurnInput) -> TurnInput:
    """A scheduled turn takes its request id from the workflow id, which has the time for which it was due."""
    return replace(turn, request_id=request_id_of(workflow.info().workflow_id))


def _refused(begun: Begun) -> LoopEnd:
    """A turn that never ran. For `known`, finish changes nothing and returns what is stored."""
    if begun.outcome == "known":
        return LoopEnd("completed", "end_turn")
    if begun.outcome == "withdrawn":
        return LoopEnd("aborted", "cancelled")
    if begun.outcome == "conflict":
        return LoopEnd("error", "error", begun.error, "parse", foreign=True)
    if begun.outcome in ("busy", "full"):
        return LoopEnd("dropped", None, begun.error)
    return LoopEnd("error", "error", begun.error, "parse")
