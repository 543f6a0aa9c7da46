"""The model step: loads what the model must see, calls it once, streams its answer, and stores it once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from everturn.activities.attempts import after_failure
from everturn.activities.chunk_observer import ChunkObserver
from everturn.activities.models.accumulator import Accumulator, Completion
from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.prices import cost_of
from everturn.activities.outcomes import call_fingerprint, outcome_events
from everturn.activities.outputs import invalid_output_of, void_text, with_output
from everturn.activities.pace import QUICK_CALLS
from everturn.activities.payloads import Asking, CallRef, StepDone, StepInput, activity_name
from everturn.activities.previews import call_label, preview
from everturn.activities.requesting import exceeds, model_request, step_prompt, too_long
from everturn.activities.running import Interrupted, stopped_here, until_interrupted
from everturn.activities.services import Activities, Services
from everturn.activities.settings import StepSettings, step_settings
from everturn.activities.sizes import MAX_CALLS, MAX_NAME_BYTES
from everturn.activities.step_run import Fenced, StepRun
from everturn.activities.system_prompt import system_prompt
from everturn.activities.telemetry import Place, step_failed, step_finished
from everturn.activities.transcripts import Transcripts
from everturn.activities.transforming import TransformChain
from everturn.activities.turn_tools import unresolved
from everturn.activities.values import check_input_size, error_text
from everturn.chunks import FINISH_STEP, TOOL_INPUT_AVAILABLE, Event
from everturn.hooks.log import cut
from everturn.hooks.points import ON_CHUNK
from everturn.hooks.references import UnresolvedReference
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.tools import Tool, ToolInputError
from everturn.messages import text_of
from everturn.store.records import HookTrace, Opening, PromptMaterial, StepRecord, ToolCall

TRUNCATED_TEXT: Final = (
    "This tool call was cut off by the output limit and was not run. Make the call again with shorter arguments, "
    "or answer without it."
)
TOO_MANY_TEXT: Final = f"This call was not run: only the first {MAX_CALLS} calls of an answer are. Make it again alone."
INTERRUPTED_TEXT: Final = "The turn was cancelled before this tool was run."


class ModelStepActivities(Activities):
    """model_step."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._transcripts = Transcripts()

    @activity.defn(name=activity_name("model_step"))
    async def model_step(self, given: StepInput) -> StepDone:
        """One model call, stored once. Raises ApplicationError: retryable while attempts are left, final otherwise."""
        agent = self._services.agents.get(given.agent)
        if self._services.running.was_interrupted(given.request_id):
            # Not even begun: a new attempt would void the words of one whose worker died while it was cancelled.
            return StepDone(given.step, activity.info().attempt, agent.model.name, "interrupted", interrupted=True)
        return await self._begun(given, agent)

    async def _begun(self, given: StepInput, agent: RegisteredAgent) -> StepDone:
        opening, material = await self._opened(given)
        try:
            settings = step_settings(agent, material.turn.config, given.step, opening.fallback, opening.chosen)
            if opening.stored is not None:
                return self._done(given, opening.stored, settings)
        except UnresolvedReference as error:
            raise unresolved(error) from error
        began = time.monotonic()
        try:
            return await self._attempt(given, agent, opening, material, settings)
        except UnresolvedReference as error:
            raise unresolved(error) from error
        except ModelFailure as failure:
            if settings.telemetry is not None:
                place = Place(given.step, opening.attempt, settings.model.name)
                step_failed(settings.telemetry, material.turn, place, failure, began)
            raise await after_failure(self._services, agent, given, opening, material, settings, failure) from failure
        except Fenced:
            raise _superseded() from None

    async def _opened(self, given: StepInput) -> tuple[Opening, PromptMaterial]:
        """The step's opening, and what it is asked with: read meanwhile, since the workflow schedules a step only when
        all of that is stored."""
        info = activity.info()
        known = self._transcripts.of(given.request_id)
        loading = asyncio.ensure_future(self._store.load_prompt(given.request_id, known))
        try:
            opening = await self._store.open_step(
                given.request_id,
                given.step,
                activity=f"{info.workflow_run_id}/{info.activity_id}",
                try_=info.attempt,
            )
            if opening.superseded:
                raise _superseded()
            material = await loading
            self._transcripts.keep(material)
            return opening, material
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)

    async def _attempt(
        self,
        given: StepInput,
        agent: RegisteredAgent,
        opening: Opening,
        material: PromptMaterial,
        settings: StepSettings,
    ) -> StepDone:
        model = settings.model
        resolved = await self._services.lanes.resolve(
            model.name, api_base=model.api_base, api_key_env=model.api_key_env, lane=model.lane
        )
        prompt = step_prompt(settings, await self._system(agent, settings, material), material, agent, resolved.model)
        if given.may_compact and exceeds(agent, prompt):
            raise too_long()
        await self._trace_repairs(given, prompt.notes)
        taken = [call.tool_call_id for step in material.steps for call in step.calls]
        transforms = TransformChain.of(agent, settings.transforms, given.request_id, given.step, opening.attempt)
        chain = agent.chain(ON_CHUNK, given.on_chunk)
        observer = None
        if chain:
            observer = ChunkObserver(self._services, material.turn, given.step, opening.attempt, chain)
        run = StepRun(
            step=given.step,
            lane=resolved.lane,
            request=model_request(settings, prompt, resolved),
            settings=settings,
            writer=self._store.writer(given.request_id, given.step, opening.attempt),
            accumulator=Accumulator(
                given.step,
                send_reasoning=settings.send_reasoning,
                max_output_tokens=settings.max_output_tokens,
                taken=taken,
            ),
            transforms=transforms,
            observer=observer,
        )
        try:
            completion, interrupted = await self._completion(given, run)
            if completion.empty and not interrupted:
                return StepDone(given.step, opening.attempt, settings.model.name, "empty", empty=True)
            completion = run.shown(completion)
            record = _record(given, opening, run, completion, settings, interrupted=interrupted)
            await self._commit(run, record, completion)
        finally:
            await self._store.record_traces(transforms.traces)
            await transforms.values.record(self._store, given.request_id, given.step)
            if observer is not None:
                await observer.close()
        if settings.telemetry is not None:
            step_finished(settings.telemetry, material.turn, record, run.request)
        if not record.calls:
            self._transcripts.drop(given.request_id)
        return self._done(given, record, settings)

    async def _system(self, agent: RegisteredAgent, settings: StepSettings, material: PromptMaterial) -> str:
        try:
            return await system_prompt(self._services, agent, material, settings.system)
        except Exception as error:  # the author's provider may raise anything
            activity.logger.warning("a context block of agent %r failed", agent.name, exc_info=error)
            message = "a part of the system prompt could not be assembled"
            raise ModelFailure("transient", "context_failed", message, detail=error_text(error)) from error

    async def _trace_repairs(self, given: StepInput, notes: Sequence[str]) -> None:
        """A transcript that had to be repaired is a trace of an earlier fault: somebody will look for it."""
        await self._store.record_traces(
            [
                HookTrace(given.request_id, "transcript", "repair", "ok", 0, step=given.step, message=note)
                for note in notes
            ]
        )

    async def _completion(self, given: StepInput, run: StepRun) -> tuple[Completion, bool]:
        """The answer, and whether it is only what had arrived when the turn was cancelled."""
        with self._services.running.enter(given.request_id) as flag:
            try:
                return await until_interrupted(run.stream(), flag, stop_on_shutdown=True), False
            except Interrupted as stop:
                if stop.why == "cancel":
                    return run.accumulator.partial(), True
                await run.writer.drain()
                raise stopped_here() from stop

    async def _commit(self, run: StepRun, record: StepRecord, completion: Completion) -> None:
        streamed = await run.writer.rest()
        if streamed is None:
            raise Fenced
        events = [*completion.events]
        if invalid_output_of(record):
            events.append(void_text(record))
        for call in record.calls:
            shown = call.input if call.input is not None else call.raw_input
            facts = {"toolCallId": call.tool_call_id, "toolName": call.tool_name, "input": shown}
            events += run.transforms.apply(Event(TOOL_INPUT_AVAILABLE, facts))
            if call.error is not None:
                events += outcome_events(call)
        usage = {"inputTokens": record.usage.input_tokens, "outputTokens": record.usage.output_tokens}
        events.append(Event(FINISH_STEP, {"step": record.step, "finishReason": record.finish_reason, "usage": usage}))
        if not await self._store.commit_step(record, events, streamed):
            raise Fenced
        if run.observer is not None:
            for event in events:
                run.observer.seen(event)

    def _done(self, given: StepInput, record: StepRecord, settings: StepSettings) -> StepDone:
        few = len(record.calls) <= QUICK_CALLS
        return StepDone(
            step=record.step,
            attempt=record.attempt,
            model=record.model,
            finish_reason=cut(record.finish_reason, MAX_NAME_BYTES),
            calls=[self._call_ref(given, call, settings, few=few) for call in record.calls],
            usage=record.usage,
            duration_ms=record.duration_ms,
            text=preview(text_of(record.parts), previews=given.previews and bool(record.calls)),  # else in the outcome
            interrupted=record.interrupted,
            invalid_output=invalid_output_of(record),
        )

    def _call_ref(self, given: StepInput, call: ToolCall, settings: StepSettings, *, few: bool) -> CallRef:
        tool = settings.tools.get(call.tool_name)
        return CallRef(
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            label=call_label(call.tool_name, call.input, previews=given.previews),
            executable=call.error is None,
            timeout=tool.timeout if tool else 1.0,
            retries=tool.retries if tool else 0,
            fingerprint=call_fingerprint(call),
            ask=Asking() if tool and call.arguments is not None and tool.asks(call.arguments) else None,
            client=tool.client if tool else False,
            quick=few and tool is not None and self._services.pace.is_quick(given.agent, tool),
        )


def _record(
    given: StepInput,
    opening: Opening,
    run: StepRun,
    completion: Completion,
    settings: StepSettings,
    *,
    interrupted: bool,
) -> StepRecord:
    """Raises UnresolvedReference on a worker without the output's model."""
    usage = completion.usage
    if usage.cost is None:
        served = completion.response.get("model")
        usage = replace(usage, cost=cost_of(usage, settings.model.name, served if isinstance(served, str) else None))
    if interrupted:
        calls = [replace(call, state="interrupted", error=INTERRUPTED_TEXT) for call in completion.calls]
    else:
        calls = [_judged(call, settings.tools, truncated=completion.truncated) for call in completion.calls]
        calls[MAX_CALLS:] = [replace(call, state="error", error=TOO_MANY_TEXT) for call in calls[MAX_CALLS:]]
    record = StepRecord(
        request_id=given.request_id,
        step=given.step,
        attempt=opening.attempt,
        model=settings.model.name,
        parts=completion.parts,
        calls=[run.transforms.values.asked(call) for call in calls],
        finish_reason=completion.finish_reason,
        usage=usage,
        duration_ms=run.duration_ms,
        interrupted=interrupted,
        response=completion.response,
    )
    return with_output(record, settings.output)


def _judged(call: ToolCall, active: dict[str, Tool], *, truncated: bool) -> ToolCall:
    """The call as requested, or settled as an error that tells the model what is wrong with it."""
    if truncated:
        return replace(call, state="error", error=TRUNCATED_TEXT)
    tool = active.get(call.tool_name)
    if tool is None:
        names = ", ".join(active) or "none"
        wanted = cut(call.tool_name, MAX_NAME_BYTES)
        return replace(call, state="error", error=f"there is no tool named {wanted!r}; available: {names}")
    if call.input is None:
        return replace(call, state="error", error=f"the arguments of {call.tool_name} are not a JSON object")
    try:
        check_input_size(call.tool_name, call.input)
        tool.validated(call.input)
    except ToolInputError as error:
        return replace(call, state="error", error=str(error))
    return call


def _superseded() -> ApplicationError:
    return ApplicationError("a later attempt works on this step", type="Superseded", non_retryable=True)
