"""before_turn, before_step and on_step_finish: the hook points around the model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from temporalio import activity

from everturn.activities.answers import Answer, K, take
from everturn.activities.dispatch import Dispatch, denies, fail, fails_turn
from everturn.activities.facts import hook_ref, step_facts
from everturn.activities.payloads import HookInput, StepVerdict, TurnDecision, activity_name
from everturn.activities.requesting import transcript
from everturn.activities.services import Activities
from everturn.activities.settings import STEP_INDEX_KEY, STEP_KEY, TURN_KEY, step_settings, turn_config
from everturn.activities.stopping import asks_to_stop
from everturn.activities.stored_code import with_stored_code
from everturn.activities.turn_tools import requested_tools, turn_tools, unresolved
from everturn.activities.usage import used_by, used_up
from everturn.hooks.contexts import HookContext, StepContext, StepResult, TurnContext
from everturn.hooks.decisions import Block, StepConfig, TurnConfig
from everturn.hooks.log import HookLog, cut
from everturn.hooks.points import BEFORE_STEP, BEFORE_TURN, ON_STEP_FINISH
from everturn.hooks.references import UnresolvedReference
from everturn.hooks.registry import BoundHook, RegisteredAgent
from everturn.hooks.runner import HookRun, edited
from everturn.store.records import PromptMaterial
from everturn.turns import JsonDict

X = TypeVar("X", bound=HookContext)
MAX_REASON_BYTES = 8 * 1024


class HookPointActivities(Activities):
    """One activity a point; each runs that point's whole chain."""

    @activity.defn(name=activity_name(BEFORE_TURN))
    async def before_turn(self, given: HookInput) -> TurnDecision:
        """Asks the hooks how this turn is to run, and stores the answer for its steps."""
        agent = self._services.agents.get(given.agent)
        material = await self._store.load_prompt(given.request_id)
        requested = requested_tools(material.turn.config)
        usage = partial(used_by, self._store, given.request_id)
        view: JsonDict = {
            "system": agent.agent.system,
            "messages": transcript(agent, material),
            "model": agent.model.name,
            "temperature": agent.agent.temperature,
            "tools": None,
        }

        def context(hook: BoundHook, now: JsonDict, log: HookLog) -> TurnContext:
            ref = hook_ref(material.turn, hook)
            tools = turn_tools(agent, TurnConfig(tools=now["tools"]), requested)
            fields: JsonDict = {**now, "tools": {name: tool.info for name, tool in tools.items()}}
            return TurnContext(ref, log, usage=usage, **copy.deepcopy(fields))

        dispatch = Dispatch[TurnContext](
            self._services,
            given.request_id,
            BEFORE_TURN,
            await with_stored_code(self._store, given.request_id, agent.chain(BEFORE_TURN, given.names)),
            (TurnConfig, Block),
            state=material.turn.state,
        )
        answer = await self._ask(
            dispatch, agent, Answer(TurnConfig(), {**agent.tools, **requested}, requested), view, context
        )
        await self._store.save_decision(
            given.request_id,
            config={**material.turn.config, TURN_KEY: answer.config.as_json()},
            state=None,
            hook_error=answer.error,
        )
        config = answer.config
        configured = config.active_telemetry is not None or bool(config.transforms)
        return TurnDecision(answer.blocked, config.max_steps, config.stop_rules, config.stop_checks, configured)

    @activity.defn(name=activity_name(BEFORE_STEP))
    async def before_step(self, given: HookInput) -> None:
        """Asks the hooks how this step is to run, and stores the answer for it."""
        agent = self._services.agents.get(given.agent)
        material = await self._store.load_prompt(given.request_id)
        step = given.step or 0
        turn = turn_config(material.turn.config)
        try:
            requested = requested_tools(material.turn.config)
            tools = turn_tools(agent, turn, requested)
        except UnresolvedReference as error:
            raise unresolved(error) from error
        view: JsonDict = {
            "model": turn.model or agent.model.name,
            "messages": transcript(agent, material, turn.messages),
        }
        steps = [step_facts(record) for record in material.steps]
        usage = partial(used_by, self._store, given.request_id)

        def context(hook: BoundHook, now: JsonDict, log: HookLog) -> StepContext:
            ref = hook_ref(material.turn, hook, str(step))
            return StepContext(ref, log, step=step, steps=steps, usage=usage, **copy.deepcopy(now))

        dispatch = Dispatch[StepContext](
            self._services,
            given.request_id,
            BEFORE_STEP,
            agent.chain(BEFORE_STEP, given.names),
            (StepConfig,),
            step=step,
            state=material.turn.state,
        )
        answer = await self._ask(dispatch, agent, Answer(StepConfig(), tools, requested), view, context)
        decided = answer.config.as_json()
        if decided or material.turn.config.get(STEP_INDEX_KEY) == step:  # an earlier run may have decided otherwise
            config = {**material.turn.config, STEP_INDEX_KEY: step, STEP_KEY: decided}
            await self._store.save_decision(given.request_id, config=config, state=None, hook_error=None)

    @activity.defn(name=activity_name(ON_STEP_FINISH))
    async def on_step_finish(self, given: HookInput) -> StepVerdict:
        """Tells the hooks what the step did, which changes nothing, and asks the author's stop conditions."""
        agent = self._services.agents.get(given.agent)
        material = await self._store.load_prompt(given.request_id)
        step = given.step or 0
        offered = _offered(agent, material, step)
        facts = step_facts(_step(material, step), offered)
        chain = agent.chain(ON_STEP_FINISH, given.names)
        dispatch = Dispatch[StepResult](
            self._services, given.request_id, ON_STEP_FINISH, chain, step=step, state=material.turn.state
        )
        for hook in chain:

            def context(log: HookLog, hook: BoundHook = hook) -> StepResult:
                return StepResult(hook_ref(material.turn, hook, str(step)), log, facts=copy.deepcopy(facts))

            run, _ = await dispatch.run(hook, context)
            dispatch.trace(run)
        await dispatch.record()
        steps = [step_facts(record) for record in material.steps] if given.stop_when else []
        stop = await asks_to_stop(self._services, given.request_id, step, given.stop_when, steps)
        return StepVerdict(await used_up(self._store, given.request_id, step, given.limits) or stop)

    async def _ask(
        self,
        dispatch: Dispatch[X],
        agent: RegisteredAgent,
        answer: Answer[K],
        view: JsonDict,
        context: Callable[[BoundHook, JsonDict, HookLog], X],
    ) -> Answer[K]:
        for hook in dispatch.chain:
            now = {**view, **{name: getattr(answer.config, name) for name in answer.config.changed if name in view}}
            run, seen = await dispatch.run(hook, partial(context, hook, now))
            if not run.ok:
                await self._refuse(dispatch, run, answer)
            elif isinstance(run.value, Block):
                answer.blocked = cut(run.value.reason or Block().reason, MAX_REASON_BYTES)
                dispatch.trace(run, ["block"])
            else:
                taken = take(agent, answer, run, edited(now, seen) if hook.added else {})
                if isinstance(taken, HookRun):
                    await self._refuse(dispatch, taken, answer)
                else:
                    dispatch.trace(run, taken.changed, taken.warning)
            if answer.blocked is not None:
                break
        await dispatch.record()
        return answer

    async def _refuse(self, dispatch: Dispatch[X], run: HookRun, answer: Answer[K]) -> None:
        """The failure policy: the turn fails, is blocked, or goes on as if the hook had not been there.

        Only before_turn can block; a denial at another point ends the turn as an error.
        """
        dispatch.trace(run)
        failure = run.failure()
        answer.error = str(failure)
        if fails_turn(run) or (denies(run) and dispatch.point != BEFORE_TURN):
            await dispatch.record()
            if dispatch.point == BEFORE_TURN:
                await self._store.save_decision(dispatch.request_id, config=None, state=None, hook_error=answer.error)
            fail(failure)
        if denies(run):
            answer.blocked = Block().reason


def _offered(agent: RegisteredAgent, material: PromptMaterial, step: int) -> list[JsonDict]:
    """The tools that the model was offered in a step."""
    return [tool.as_openai() for tool in step_settings(agent, material.turn.config, step).tools.values()]


def _step(material: PromptMaterial, step: int) -> Any:
    return next(record for record in material.steps if record.step == step)
