"""before_tool_call and after_tool_call: the hook points around a tool."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from temporalio import activity

from everturn.activities.dispatch import Dispatch, denies
from everturn.activities.facts import hook_ref
from everturn.activities.outcomes import call_done, outcome_events
from everturn.activities.payloads import Asking, CallDecision, CallInput, activity_name
from everturn.activities.requesting import transcript
from everturn.activities.services import Activities
from everturn.activities.tool_values import ToolValues
from everturn.activities.values import NotJsonError, as_json, check_input_size, for_model
from everturn.hooks.contexts import ToolCallContext, ToolCallResultContext
from everturn.hooks.decisions import Allow, Ask, Block, Replace, Substitute
from everturn.hooks.log import HookLog, cut
from everturn.hooks.points import AFTER_TOOL_CALL, BEFORE_TOOL_CALL
from everturn.hooks.runner import HookRun, edited
from everturn.hooks.tools import Tool, ToolInputError
from everturn.store.records import SETTLED_CALLS, PromptMaterial, ToolCall
from everturn.turns import JsonDict

WITHHELD_TEXT: Final = "The result of this call is withheld: it could not be checked."
"""Shown instead of an output when a hook with on_error="deny" failed."""


MAX_REASON_BYTES = 1024


@dataclass
class Verdict:
    """What the hooks came to so far. The strongest decision counts: block, ask, substitute, allow."""

    input: JsonDict
    blocked: str | None = None
    ask: Ask | None = None
    substitute: Substitute | None = None
    failed: str | None = None


class ToolPointActivities(Activities):
    """Each runs its point's whole chain for one tool call."""

    @activity.defn(name=activity_name(BEFORE_TOOL_CALL))
    async def before_tool_call(self, given: CallInput) -> CallDecision:
        """Asks the hooks whether and how the call runs; settles it if it does not."""
        call = await self._store.call(given.request_id, given.tool_call_id)
        if call.state in SETTLED_CALLS:
            return CallDecision(call_done(call))
        tool = await self._tool(given.request_id, given.agent, given.tool_name)
        if tool is None or call.input is None:
            return CallDecision()
        material = await self._store.load_prompt(given.request_id)
        values = self._tool_values(given.agent, material.turn)
        verdict = await self._verdict(given, call, material)
        settled = await self._settled(given, call, tool, verdict, values)
        await values.record(self._store, given.request_id, given.step)
        if settled is not None:
            return CallDecision(call_done(settled))
        return CallDecision(ask=_asking(tool, verdict))

    @activity.defn(name=activity_name(AFTER_TOOL_CALL))
    async def after_tool_call(self, given: CallInput) -> None:
        """Tells the hooks the outcome; what they replace is what the model and clients see."""
        agent = self._services.agents.get(given.agent)
        call = await self._store.call(given.request_id, given.tool_call_id)
        turn = await self._store.load_turn(given.request_id)
        values = self._tool_values(given.agent, turn)
        chain = agent.chain(AFTER_TOOL_CALL, given.names, given.tool_name)
        dispatch = Dispatch[ToolCallResultContext](
            self._services,
            given.request_id,
            AFTER_TOOL_CALL,
            chain,
            (Replace,),
            step=given.step,
            tool_call_id=given.tool_call_id,
            state=turn.state,
        )
        shown = call
        for hook in chain:
            ref = hook_ref(turn, hook, given.tool_call_id)

            def context(log: HookLog, ref: Any = ref, shown: ToolCall = shown) -> ToolCallResultContext:
                return ToolCallResultContext(
                    ref,
                    log,
                    tool_name=shown.tool_name,
                    tool_call_id=shown.tool_call_id,
                    step=shown.step,
                    input=copy.deepcopy(shown.input),
                    model_input=copy.deepcopy(shown.input if shown.model_input is None else shown.model_input),
                    output=copy.deepcopy(shown.output),
                    error=shown.error,
                    success=shown.error is None,
                    duration_ms=shown.duration_ms or 0,
                )

            run, seen = await dispatch.run(hook, context)
            shown, changed, warning = _presented(run, edited({"output": shown.output}, seen), shown, values)
            dispatch.trace(run, changed, warning)
        await dispatch.record()
        await values.record(self._store, given.request_id, given.step)
        is_new = shown != call or not given.announce
        await self._store.present_call(given.request_id, shown, outcome_events(shown) if is_new else [])

    async def _verdict(self, given: CallInput, call: ToolCall, material: PromptMaterial) -> Verdict:
        agent = self._services.agents.get(given.agent)
        chain = agent.chain(BEFORE_TOOL_CALL, given.names, given.tool_name)
        dispatch = Dispatch[ToolCallContext](
            self._services,
            given.request_id,
            BEFORE_TOOL_CALL,
            chain,
            (Allow, Ask, Block, Substitute),
            step=given.step,
            tool_call_id=given.tool_call_id,
            state=material.turn.state,
        )
        messages = transcript(agent, material)
        verdict = Verdict(copy.deepcopy(call.arguments or {}))
        with self._services.running.enter(given.request_id) as cancelled:
            for hook in chain:
                ref = hook_ref(material.turn, hook, given.tool_call_id)

                def context(log: HookLog, ref: Any = ref) -> ToolCallContext:
                    return ToolCallContext(
                        ref,
                        log,
                        tool_name=given.tool_name,
                        input=copy.deepcopy(verdict.input),
                        tool_call_id=given.tool_call_id,
                        step=given.step,
                        messages=copy.deepcopy(messages),
                        cancelled=cancelled,
                    )

                run, seen = await dispatch.run(hook, context)
                changed = _apply(run, edited({"input": verdict.input}, seen) if hook.added else {}, verdict)
                dispatch.trace(run, changed)
                if verdict.blocked is not None or verdict.failed is not None:
                    break
        await dispatch.record()
        return verdict

    async def _settled(
        self, given: CallInput, call: ToolCall, tool: Tool, verdict: Verdict, values: ToolValues
    ) -> ToolCall | None:
        """The call with its outcome, if the hooks or the rewritten input decided it; None if it is to run."""
        rewritten = verdict.input != call.arguments
        as_run = replace(values.with_arguments(call, verdict.input), model_input=call.input) if rewritten else call
        if verdict.failed is not None:
            return await self._settle(given, replace(as_run, state="error", error=verdict.failed), values)
        if verdict.blocked is not None:
            blocked = replace(as_run, state="blocked", output=for_model(verdict.blocked)[0])
            return await self._settle(given, blocked, values)
        if verdict.substitute is not None and verdict.ask is None:
            return await self._settle(given, _substituted(as_run, verdict.substitute, values), values)
        if not rewritten:
            return None
        try:
            check_input_size(given.tool_name, verdict.input)
            tool.validated(verdict.input)
        except ToolInputError as error:
            return await self._settle(given, replace(as_run, state="error", error=str(error)), values)
        await self._store.amend_call(given.request_id, given.tool_call_id, as_run.input or {}, as_run.run_input)
        return None

    async def _settle(self, given: CallInput, call: ToolCall, values: ToolValues) -> ToolCall:
        settled = replace(values.settled(call), duration_ms=0)
        events = outcome_events(settled) if given.announce else []
        return await self._store.settle_call(given.request_id, settled, events)


def _apply(run: HookRun, edits: JsonDict, verdict: Verdict) -> list[str]:
    """Takes one hook's answer into the verdict; returns what it changed."""
    if not run.ok:
        if denies(run):
            verdict.blocked = Block().reason
        elif run.hook.owner is None or run.hook.owner.on_error == "raise":
            verdict.failed = str(run.failure())
        return []
    answer: Allow | Ask | Block | Substitute | None = run.value
    if isinstance(answer, Block):
        verdict.blocked = answer.reason or Block().reason
        return ["block"]
    if isinstance(answer, Ask):
        verdict.ask = answer
        return ["ask"]
    if isinstance(answer, Substitute):
        verdict.substitute = answer
        return ["substitute"]
    new = answer.input if answer is not None and answer.input is not None else edits.get("input")
    return [] if new is None else _rewrite(run, new, verdict)


def _rewrite(run: HookRun, new: object, verdict: Verdict) -> list[str]:
    try:
        plain = as_json(new)
    except NotJsonError:
        plain = None
    if isinstance(plain, dict):
        verdict.input = cast(JsonDict, plain)
    else:
        changed = f"{run.hook.point} of hook {run.hook.name!r} rewrote the input to {type(new).__name__}"
        verdict.failed = f"{changed}, which is no JSON object; the tool was not run"
    return ["input"]


def _asking(tool: Tool, verdict: Verdict) -> Asking | None:
    if verdict.ask is not None:
        return Asking(cut(verdict.ask.reason, MAX_REASON_BYTES), verdict.ask.timeout)
    return Asking() if tool.asks(verdict.input) else None


def _substituted(call: ToolCall, answer: Substitute, values: ToolValues) -> ToolCall:
    try:
        whole = values.shown(as_json(answer.output))
    except NotJsonError as error:
        return replace(call, state="error", error=str(error))
    shown, was_cut = for_model(whole)
    return replace(call, state="substituted", output=shown, raw_output=whole if was_cut else None)


def _presented(
    run: HookRun, edits: JsonDict, shown: ToolCall, values: ToolValues
) -> tuple[ToolCall, list[str], str | None]:
    """The call as it is to be shown after this hook, what changed, and a warning. The raw output is kept."""
    if denies(run):
        return replace(shown, output=None, error=WITHHELD_TEXT, raw_output=_raw(shown)), ["output"], None
    if run.ok and isinstance(run.value, Replace):
        new = run.value.output
    elif run.ok and run.hook.added and "output" in edits:
        new = edits["output"]
    else:
        return shown, [], None
    try:
        plain, _ = for_model(values.shown(as_json(new)))
    except NotJsonError as error:
        return shown, [], f"ignored: {error}"
    return replace(shown, output=plain, error=None, raw_output=_raw(shown)), ["output"], None


def _raw(call: ToolCall) -> object:
    """What the tool itself returned."""
    return call.raw_output if call.raw_output is not None else call.output
