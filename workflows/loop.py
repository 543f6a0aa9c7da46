"""The model/tool loop of a turn: steps until the model has answered, a limit is reached, or something failed."""

from __future__ import annotations

import asyncio
import fnmatch
from dataclasses import dataclass, replace

from temporalio.exceptions import ActivityError

from everturn.activities.payloads import (
    Begun,
    CallDone,
    CallInput,
    CallRef,
    CompactInput,
    HookInput,
    StepDone,
    StepInput,
    TurnInput,
)
from everturn.turns import StopReason, TurnError, TurnStatus
from everturn.workflows.arrows import Arrows, Stopped
from everturn.workflows.failures import OVERFLOW, classification, failure_facts
from everturn.workflows.stops import Stops
from everturn.workflows.timeouts import EMPTY_ANSWERS, TOOL_LOOP_CAP
from everturn.workflows.view import TurnView
from everturn.workflows.waits import Waits


@dataclass(frozen=True)
class LoopEnd:
    """How the loop ended, before anything is stored. stage: where an error arose. text: the reply of a block.
    foreign: the request id belongs to another turn, which must not be touched. classification: of a model's failure."""

    status: TurnStatus
    stop_reason: StopReason | None = None
    error: TurnError | None = None
    stage: str = "stream"
    text: str | None = None
    foreign: bool = False
    classification: str | None = None


class Loop:
    """Runs the steps of one turn. The manifest in `begun` decides which hook points are scheduled."""

    def __init__(self, turn: TurnInput, begun: Begun, arrows: Arrows, waits: Waits, view: TurnView) -> None:
        self._turn, self._begun, self._arrows, self._waits, self._view = turn, begun, arrows, waits, view
        self._max_steps = begun.max_steps
        self._overflow_retries, self._compactions = begun.overflow_retries, begun.compactions
        self._last_failure = ""
        self._failures_in_a_row = 0
        self._stops = Stops()
        self._repaired = False
        self._configured = False

    async def run(self) -> LoopEnd:
        """Raises Stopped when the turn is cancelled, FailureError when a step or an agent's hook failed for good."""
        refusal = await self._before_turn()
        if refusal is not None:
            return LoopEnd("blocked", "blocked", text=refusal)
        step = 0
        while step < self._max_steps:
            done = await self._model_step(step)
            if done is None:
                message = "the model answered twice with neither text nor a tool call"
                return LoopEnd("error", "error", TurnError("empty_response", message))
            looping = await self._tool_calls(done)
            stopping = await self._on_step_finish(done) or self._stops.met(done)
            end = self._end_after(done, looping=looping, stopping=stopping)
            if end is not None:
                return end
            step += 1
        return LoopEnd("completed", "max_steps")

    def _end_after(self, done: StepDone, *, looping: bool, stopping: bool) -> LoopEnd | None:
        if done.invalid_output:
            if self._repaired:
                message = f"the answer does not have the required form: {done.invalid_output}"
                return LoopEnd("error", "error", TurnError("invalid_output", message))
            self._repaired = True
            self._max_steps += 1  # the repair is ours, not one of the author's steps
            return None
        if not done.calls:
            return LoopEnd("completed", "end_turn")
        if looping:
            return LoopEnd("completed", "tool_loop")
        return LoopEnd("completed", "stop_when") if stopping else None

    async def _before_turn(self) -> str | None:
        names = self._names("before_turn")
        if not names:
            return None
        decision = await self._arrows.before_turn(HookInput(self._turn.request_id, self._turn.agent, names))
        if decision.max_steps is not None:
            self._max_steps = decision.max_steps
        self._stops.decide(decision)
        self._configured = decision.configured
        return decision.blocked

    async def _model_step(self, step: int) -> StepDone | None:
        names = self._names("before_step")
        if names:
            await self._arrows.before_step(HookInput(self._turn.request_id, self._turn.agent, names, step))
        given = StepInput(
            self._turn.request_id,
            self._turn.agent,
            step,
            on_chunk=self._names("on_chunk"),
            classify=self._names("classify_chat_error"),
            previews=self._turn.previews,
        )
        self._view.step_started(step, self._begun.model)
        for _ in range(EMPTY_ANSWERS):
            done = await self._fitting(given)
            self._stops.count(done)
            self._view.step_done(done)
            if done.interrupted:
                raise Stopped
            if not done.empty:
                return done
        return None

    async def _fitting(self, given: StepInput) -> StepDone:
        """The step; if its prompt is too long, compacts the thread and asks again, within the session's limits."""
        while True:
            given = replace(given, may_compact=self._compactions > 0)
            try:
                return await self._arrows.model_step(given, self._begun.model)
            except ActivityError as error:
                if classification(error) != OVERFLOW:
                    raise
                ahead = bool(failure_facts(error).get("ahead"))
                if not ahead and self._overflow_retries <= 0:
                    raise
                shortened = await self._arrows.compact(CompactInput(self._turn.request_id, self._turn.agent))
                if not (shortened or ahead):
                    raise
            if ahead:
                self._compactions -= 1
            else:
                self._overflow_retries -= 1

    async def _tool_calls(self, done: StepDone) -> bool:
        """Runs the calls of a step side by side; True if the model repeats one failing call."""
        results = await asyncio.gather(
            *(self._tool_call(done.step, call) for call in done.calls), return_exceptions=True
        )
        settled: list[CallDone] = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            settled.append(result)
        if any(result.interrupted for result in settled):
            raise Stopped
        return max(map(self._repeats_failure, settled), default=False)

    async def _tool_call(self, step: int, call: CallRef) -> CallDone:
        after = self._tool_hooks("after_tool_call", call)
        announce = not after or not call.executable  # what cannot run was shown with the step
        given = CallInput(
            self._turn.request_id,
            self._turn.agent,
            step,
            call.tool_call_id,
            call.tool_name,
            announce=announce,
            configured=self._configured,
        )
        done = await self._outcome(given, call)
        self._view.call_done(call, done)
        if after and not done.interrupted:
            await self._arrows.after_tool_call(_with_hooks(given, after), call)
        return done

    async def _outcome(self, given: CallInput, call: CallRef) -> CallDone:
        if not call.executable:
            return CallDone(call.tool_call_id, "error", failed=True, fingerprint=call.fingerprint)
        before = self._tool_hooks("before_tool_call", call)
        if before:
            decision = await self._arrows.before_tool_call(_with_hooks(given, before), call)
            if decision.settled is not None:
                return decision.settled
            call = replace(call, ask=decision.ask)
        if call.client or call.ask is not None:
            answer = await self._waits.settled(given, call)
            if answer is not None:
                return answer
        return await self._arrows.run_tool(given, call)

    async def _on_step_finish(self, done: StepDone) -> bool:
        """True if one of the author's own conditions, or a limit shared with other turns, wants the turn to stop here;
        asked only where it could go on."""
        names = self._names("on_step_finish")
        checks, limits = (self._stops.checks, self._stops.limits) if done.calls else ([], [])
        if not (names or checks or limits):
            return False
        given = HookInput(self._turn.request_id, self._turn.agent, names, done.step, stop_when=checks, limits=limits)
        return (await self._arrows.on_step_finish(given)).stop

    def _repeats_failure(self, done: CallDone) -> bool:
        if not done.failed:
            self._last_failure, self._failures_in_a_row = "", 0
            return False
        self._failures_in_a_row = self._failures_in_a_row + 1 if done.fingerprint == self._last_failure else 1
        self._last_failure = done.fingerprint
        return self._failures_in_a_row >= TOOL_LOOP_CAP

    def _names(self, point: str) -> list[str]:
        return self._begun.points.get(point, [])

    def _tool_hooks(self, point: str, call: CallRef) -> list[str]:
        patterns = self._begun.tool_patterns.get(point)
        if patterns is not None and not any(fnmatch.fnmatchcase(call.tool_name, pattern) for pattern in patterns):
            return []
        return self._names(point)


def _with_hooks(given: CallInput, names: list[str]) -> CallInput:
    return replace(given, names=names)
