"""Runs one tool call: at most once unless the tool says that more is fine, in time, and with any outcome stored."""

from __future__ import annotations

import asyncio
import inspect
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, cast

from temporalio import activity
from temporalio.exceptions import ApplicationError

from everturn.activities.facts import turn_ref
from everturn.activities.models.secrets import scrub
from everturn.activities.outcomes import call_done, outcome_events
from everturn.activities.payloads import CallDone, CallInput, activity_name
from everturn.activities.running import Interrupted, stopped_here, until_interrupted, within_shutdown
from everturn.activities.services import Activities
from everturn.activities.settings import turn_config
from everturn.activities.telemetry import tool_finished
from everturn.activities.tool_values import ToolValues
from everturn.activities.values import NotJsonError, as_json, error_text, for_model
from everturn.chunks import TOOL_OUTPUT_AVAILABLE, TOOL_PROGRESS, Event
from everturn.hooks.calling import invoke
from everturn.hooks.cancel import CancelFlag
from everturn.hooks.contexts import ToolContext
from everturn.hooks.telemetry import Telemetry
from everturn.hooks.tools import Tool, ToolInputError
from everturn.store.records import SETTLED_CALLS, EventBatch, ToolCall, TurnFacts
from everturn.turns import JsonDict

CANCEL_GRACE: Final = 2.0
"""Seconds that a tool which takes a ToolContext gets to end by itself once its turn is cancelled."""
RETRY_FIRST: Final = 1.0
RETRY_MAX: Final = 30.0
"""Seconds between the runs of a tool with `retries`: doubling from the first to the last."""
LOST_PATIENCE: Final = 2.0
"""Seconds that a quick call which has begun elsewhere gets to end there; it would have ended in a tenth of that."""
LOOK_EVERY: Final = 0.1

INTERRUPTED_TEXT: Final = "The turn was cancelled before this tool finished."
UNKNOWN_TEXT: Final = (
    "The outcome of this call is unknown: the worker stopped while the tool was running. It may or may not have taken "
    "effect; check before calling it again."
)


class ToolFailedError(Exception):
    """The tool gave no usable result; the message is for the model."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """values: what is stored and shown of what the tool says. turn, telemetry: if its run is to be told of."""

    values: ToolValues
    turn: TurnFacts | None = None
    telemetry: Telemetry | None = None


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What one run needs."""

    given: CallInput
    call: ToolCall
    tool: Tool
    flag: CancelFlag
    values: ToolValues


class ToolActivities(Activities):
    """run_tool."""

    @activity.defn(name=activity_name("run_tool"))
    async def run_tool(self, given: CallInput) -> CallDone:
        """Settles the call: with the tool's output, an error result, `interrupted`, or `unknown`."""
        info = activity.info()
        tool = await self._tool(given.request_id, given.agent, given.tool_name)
        settings = await self._settings(given)
        opening = await self._store.open_call(
            given.request_id,
            given.tool_call_id,
            idempotent=tool.idempotent if tool else False,
            activity=_execution(info),
            try_=info.attempt,
        )
        if opening.outcome == "superseded":
            raise ApplicationError("a later attempt runs this tool call", type="Superseded", non_retryable=True)
        if opening.outcome == "settled":
            return call_done(opening.call)
        if opening.outcome == "lost":
            return await self._lost(given, opening.call)
        if tool is None:
            error = f"this worker no longer has a tool named {given.tool_name!r}"
            return await self._settle(given, replace(opening.call, state="error", error=error))
        return await self._run(given, opening.call, tool, settings)

    async def _lost(self, given: CallInput, call: ToolCall) -> CallDone:
        """A call that has begun elsewhere. A quick one may yet end there: Temporal gives its workflow task to another
        worker also when the first one is merely slow."""
        until = time.monotonic() + (LOST_PATIENCE if activity.info().is_local else 0.0)
        while call.state not in SETTLED_CALLS and time.monotonic() < until:
            await asyncio.sleep(LOOK_EVERY)
            call = await self._store.call(given.request_id, given.tool_call_id)
        return await self._settle(given, replace(call, state="unknown", error=UNKNOWN_TEXT))

    async def _run(self, given: CallInput, call: ToolCall, tool: Tool, settings: CallSettings) -> CallDone:
        started = time.monotonic()

        def ended(**outcome: Any) -> ToolCall:
            return replace(call, duration_ms=round((time.monotonic() - started) * 1000), **outcome)

        values = settings.values
        try:
            with self._services.running.enter(given.request_id) as flag:
                run = ToolRun(given, call, tool, flag, values)
                grace = CANCEL_GRACE if tool.context_parameter else 0.0
                work = self._in_time(run)
                if activity.info().is_local:  # which Temporal does not cancel when its worker's patience ends
                    work = within_shutdown(work, self._services.grace)
                output = await until_interrupted(work, flag, stop_on_shutdown=False, grace=grace)
            whole = values.shown(output)
            shown, was_cut = for_model(whole)
            settled = ended(state="done", output=shown, raw_output=whole if was_cut else None)
        except ToolFailedError as error:
            await self._retry_later(given, tool)
            settled = ended(state="error", error=str(values.shown(str(error))))
        except Interrupted as stop:
            if stop.why != "cancel":
                raise stopped_here() from stop
            settled = ended(state="interrupted", error=INTERRUPTED_TEXT)
        cut_off = settled.state == "interrupted"
        self._services.pace.ran(given.agent, given.tool_name, time.monotonic() - started, cut_off=cut_off)
        done = await self._settle(given, settled)
        await values.record(self._store, given.request_id, given.step)
        if settings.telemetry is not None and settings.turn is not None:
            tool_finished(settings.telemetry, settings.turn, settled)
        return done

    async def _settings(self, given: CallInput) -> CallSettings:
        """What before_turn settled for the turn's tools."""
        if not given.configured:
            return CallSettings(ToolValues())
        turn = await self._store.load_turn(given.request_id)
        return CallSettings(self._tool_values(given.agent, turn), turn, turn_config(turn.config).active_telemetry)

    async def _in_time(self, run: ToolRun) -> object:
        """The tool's output as JSON; raises ToolFailedError."""
        work = asyncio.ensure_future(self._call(run))
        try:
            done, _ = await asyncio.wait({work}, timeout=run.tool.timeout)
        except asyncio.CancelledError:
            work.cancel()
            raise
        if not done:
            work.cancel()
            raise ToolFailedError(f"{run.tool.name} took longer than {run.tool.timeout:g} s and was stopped")
        if work.cancelled():
            raise ToolFailedError(f"{run.tool.name} raised CancelledError")
        error = work.exception()
        if isinstance(error, ToolInputError | NotJsonError):
            raise ToolFailedError(str(error))
        if error is not None:
            activity.logger.info("tool %s raised", run.tool.name, exc_info=error)
            raise ToolFailedError(scrub(error_text(error)))
        return work.result()

    async def _call(self, run: ToolRun) -> object:
        arguments = run.tool.validated(run.call.arguments or {})
        if run.tool.context_parameter is not None:
            arguments[run.tool.context_parameter] = await self._context(run)
        function = run.tool.function
        if inspect.isasyncgenfunction(function):
            return await self._generated(run, cast(AsyncIterator[object], function(**arguments)))
        return as_json(await invoke(function, self._services.threads, **arguments))

    async def _generated(self, run: ToolRun, values: AsyncIterator[object]) -> object:
        """Each value is shown to clients as preliminary; the last one is the result."""
        last: object = None
        async for value in values:
            last = as_json(value)
            await self._show(
                run, TOOL_OUTPUT_AVAILABLE, {"output": for_model(run.values.shown(last))[0], "preliminary": True}
            )
        return last

    async def _context(self, run: ToolRun) -> ToolContext:
        turn = await self._store.load_turn(run.given.request_id)
        loop = asyncio.get_running_loop()

        def progress(value: object) -> None:
            show = self._show(run, TOOL_PROGRESS, {"value": run.values.shown(as_json(value))})
            asyncio.run_coroutine_threadsafe(show, loop)

        return ToolContext(
            turn_ref(turn, "tool", run.call.tool_call_id, run.tool.timeout),
            tool_call_id=run.call.tool_call_id,
            step=run.given.step,
            cancelled=run.flag,
            progress=progress,
        )

    async def _show(self, run: ToolRun, kind: str, data: JsonDict) -> None:
        event = Event(kind, {"toolCallId": run.call.tool_call_id, **data})
        await self._store.append(EventBatch(run.given.request_id, [event], run.given.step))

    async def _retry_later(self, given: CallInput, tool: Tool) -> None:
        """Raises, so that Temporal runs the tool again, while the author's `retries` last."""
        if tool.retries <= 0:
            return
        failures = await self._store.release_call(given.request_id, given.tool_call_id, tool.retries)
        if failures <= tool.retries:
            delay = min(RETRY_FIRST * 2 ** (failures - 1), RETRY_MAX)
            raise ApplicationError("the tool failed", type="ToolFailed", next_retry_delay=timedelta(seconds=delay))

    async def _settle(self, given: CallInput, call: ToolCall) -> CallDone:
        events = outcome_events(call) if given.announce or call.state == "interrupted" else []
        return call_done(await self._store.settle_call(given.request_id, call, events))


def _execution(info: activity.Info) -> str:
    """Names what must not run twice. A local activity that a dead worker left half done comes again under the same id
    and attempt, so there each execution is named by itself."""
    name = f"{info.workflow_run_id}/{info.activity_id}"
    return f"{name}/{uuid.uuid4().hex}" if info.is_local else name
