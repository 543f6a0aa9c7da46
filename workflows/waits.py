"""Tool calls that wait for a person or a front end: the turn sleeps with them, for days if need be, at no cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from everturn.activities.payloads import CallDone, CallInput, CallRef
from everturn.activities.wait_payloads import Approval, ClientResult, Denial, WaitAnswer, WaitInput
from everturn.workflows.arrows import Arrows, Stopped
from everturn.workflows.timeouts import CLIENT_TOOL_TIMEOUT
from everturn.workflows.view import TurnView


@dataclass
class _Wait:
    """taken: an answer is being stored. resolved: it is. settled: the call's outcome, None if it may run."""

    given: CallInput
    call: CallRef
    kind: str
    taken: bool = False
    resolved: bool = False
    settled: CallDone | None = None


class Waits:
    """The calls of one turn that wait or have waited. The first answer counts."""

    def __init__(self, arrows: Arrows, view: TurnView) -> None:
        self._arrows, self._view = arrows, view
        self._waits: dict[str, _Wait] = {}

    async def settled(self, given: CallInput, call: CallRef) -> CallDone | None:
        """Waits for an answer: the call's outcome, or None if it may run now. Raises Stopped on a cancel."""
        seconds = call.ask.timeout if call.ask is not None else CLIENT_TOOL_TIMEOUT.total_seconds()
        reason = call.ask.reason if call.ask is not None else ""
        wait = _Wait(given, call, "client_tool" if call.client else "approval")
        self._waits[call.tool_call_id] = wait
        until = workflow.time() + seconds
        await self._arrows.open_wait(WaitInput(given.request_id, call.tool_call_id, wait.kind, reason, until))
        self._view.waiting(call)
        try:
            await workflow.wait_condition(
                lambda: wait.resolved or self._arrows.stopping, timeout=timedelta(seconds=seconds)
            )
        except TimeoutError:
            await self._expire(wait)
        if not wait.resolved:
            wait.taken = True
            raise Stopped
        return wait.settled

    def check(self, tool_call_id: str, kind: str) -> None:
        """For the validators of the updates: refuses an answer to a call that does not wait (any more)."""
        wait = self._waits.get(tool_call_id)
        if wait is None or wait.kind != kind:
            raise ApplicationError(f"no call {tool_call_id!r} of this turn waits for that", type="NotPending")
        if wait.taken:
            raise ApplicationError(f"call {tool_call_id!r} was answered before", type="AlreadyResolved")

    async def approve(self, given: Approval) -> None:
        await self._answer(given.tool_call_id, "approved", input_=given.input)

    async def deny(self, given: Denial) -> None:
        await self._answer(given.tool_call_id, "denied", error=given.reason)

    async def take_result(self, given: ClientResult) -> None:
        await self._answer(given.tool_call_id, "result", output=given.output, error=given.error)

    async def _expire(self, wait: _Wait) -> None:
        if wait.taken:  # somebody answered at the last moment
            await workflow.wait_condition(lambda: wait.resolved or not wait.taken)
        if not wait.resolved:
            await self._answer(wait.call.tool_call_id, "expired")

    async def _answer(
        self,
        tool_call_id: str,
        answer: str,
        *,
        input_: dict[str, object] | None = None,
        output: object = None,
        error: str | None = None,
    ) -> None:
        wait = self._waits[tool_call_id]
        wait.taken = True
        sent = WaitAnswer(
            request_id=wait.given.request_id,
            agent=wait.given.agent,
            tool_call_id=tool_call_id,
            tool_name=wait.call.tool_name,
            answer=answer,
            input=input_,
            output=output,
            error=error,
            announce=wait.given.announce,
        )
        try:
            wait.settled = (await self._arrows.resolve_wait(sent, wait.call)).settled
        except BaseException:
            wait.taken = False  # the answer could not be used: the call still waits for another one
            raise
        wait.resolved = True
