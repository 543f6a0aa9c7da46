"""before_turn, before_step and on_step_finish: the hook points around the model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from pydantic import ValidationError
from temporalio import activity

from everturn.activities.dispatch import Dispatch, denies, fail, fails_turn
from everturn.activities.facts import step_facts, turn_ref
from everturn.activities.payloads import HookInput, TurnDecision, activity_name
from everturn.activities.requesting import transcript
from everturn.activities.services import Activities
from everturn.activities.settings import STEP_INDEX_KEY, STEP_KEY, TURN_KEY, model_allowed, turn_config
from everturn.hooks.contexts import HookContext, StepContext, StepResult, TurnContext
from everturn.hooks.decisions import Block, Config, StepConfig, TurnConfig
from everturn.hooks.log import HookLog, cut
from everturn.hooks.points import BEFORE_STEP, BEFORE_TURN, ON_STEP_FINISH
from everturn.hooks.registry import BoundHook, RegisteredAgent
from everturn.hooks.runner import HookRun, edited
from everturn.store.records import PromptMaterial
from everturn.turns import JsonDict

K = TypeVar("K", bound=Config)
X = TypeVar("X", bound=HookContext)
MAX_REASON_BYTES = 8 * 1024
ROLES = frozenset({"user", "assistant", "system", "tool", "developer"})


@dataclass
class Answer(Generic[K]):
    """What a chain came to. error: the last failure that the turn ignored."""

    config: K
    blocked: str | None = None
    error: str | None = None


class HookPointActivities(Activities):
    """One activity a point; each runs that point's whole chain."""

    @activity.defn(name=activity_name(BEFORE_TURN))
    async def before_turn(self, given: HookInput) -> TurnDecision:
        """Asks the hooks how this turn is to run, and stores the answer for its steps."""
        agent = self._services.agents.get(given.agent)
        material = await self._store.load_prompt(given.request_id)
        view: JsonDict = {
            "system": agent.agent.system,
            "messages": transcript(material),
            "model": agent.model.name,
            "temperature": agent.agent.temperature,
        }

        def context(hook: BoundHook, now: JsonDict, log: HookLog) -> TurnContext:
            ref = turn_ref(material.turn, BEFORE_TURN, timeout=hook.timeout)
            return TurnContext(ref, log, tools={t.name: t.info for t in agent.tools.values()}, **copy.deepcopy(now))

        dispatch = Dispatch[TurnContext](
            self._services,
            given.request_id,
            BEFORE_TURN,
            agent.chain(BEFORE_TURN, given.names),
            (TurnConfig, Block),
            state=material.turn.state,
        )
        answer = await self._ask(dispatch, agent, TurnConfig(), view, context)
        await self._store.save_decision(
            given.request_id,
            config={TURN_KEY: answer.config.as_json()},
            state=None,
            hook_error=answer.error,
        )
        return TurnDecision(answer.blocked, answer.config.max_steps)

    @activity.defn(name=activity_name(BEFORE_STEP))
    async def before_step(self, given: HookInput) -> None:
        """Asks the hooks how this step is to run, and stores the answer for it."""
        agent = self._services.agents.get(given.agent)
        material = await self._store.load_prompt(given.request_id)
        step = given.step or 0
        turn = turn_config(material.turn.config)
        view: JsonDict = {
            "model": turn.model or agent.model.name,
            "messages": turn.messages if turn.messages is not None else transcript(material),
        }
        steps = [step_facts(record) for record in material.steps]

        def context(hook: BoundHook, now: JsonDict, log: HookLog) -> StepContext:
            ref = turn_ref(material.turn, BEFORE_STEP, str(step), hook.timeout)
            return StepContext(ref, log, step=step, steps=steps, **copy.deepcopy(now))

        dispatch = Dispatch[StepContext](
            self._services,
            given.request_id,
            BEFORE_STEP,
            agent.chain(BEFORE_STEP, given.names),
            (StepConfig,),
            step=step,
            state=material.turn.state,
        )
        answer = await self._ask(dispatch, agent, StepConfig(), view, context)
        config = {**material.turn.config, STEP_INDEX_KEY: step, STEP_KEY: answer.config.as_json()}
        await self._store.save_decision(given.request_id, config=config, state=None, hook_error=None)

    @activity.defn(name=activity_name(ON_STEP_FINISH))
    async def on_step_finish(self, given: HookInput) -> None:
        """Tells the hooks what the step did; nothing that they do changes the turn."""
        agent = self._services.agents.get(given.agent)
        material = await self._store.load_prompt(given.request_id)
        step = given.step or 0
        facts = step_facts(_step(material, step), [tool.as_openai() for tool in agent.tools.values()])
        chain = agent.chain(ON_STEP_FINISH, given.names)
        dispatch = Dispatch[StepResult](
            self._services, given.request_id, ON_STEP_FINISH, chain, step=step, state=material.turn.state
        )
        for hook in chain:
            ref = turn_ref(material.turn, ON_STEP_FINISH, str(step), hook.timeout)
            run, _ = await dispatch.run(hook, lambda log, ref=ref: StepResult(ref, log, facts=facts))
            dispatch.trace(run)
        await dispatch.record()

    async def _ask(
        self,
        dispatch: Dispatch[X],
        agent: RegisteredAgent,
        config: K,
        view: JsonDict,
        context: Callable[[BoundHook, JsonDict, HookLog], X],
    ) -> Answer[K]:
        answer = Answer(config)
        for hook in dispatch.chain:
            now = {**view, **{name: getattr(answer.config, name) for name in answer.config.changed if name in view}}
            run, seen = await dispatch.run(hook, lambda log, hook=hook, now=now: context(hook, now, log))
            if not run.ok:
                await self._refuse(dispatch, run, answer)
            elif isinstance(run.value, Block):
                answer.blocked = cut(run.value.reason or Block().reason, MAX_REASON_BYTES)
                dispatch.trace(run, ["block"])
            else:
                _merge(dispatch, agent, run, answer, edited(now, seen) if hook.added else {})
            if answer.blocked is not None:
                break
        await dispatch.record()
        return answer

    async def _refuse(self, dispatch: Dispatch[X], run: HookRun, answer: Answer[K]) -> None:
        """The failure policy: the turn fails, is blocked, or goes on as if the hook had not been there."""
        dispatch.trace(run)
        failure = run.failure()
        answer.error = str(failure)
        if fails_turn(run):
            await dispatch.record()
            await self._store.save_decision(dispatch.request_id, config=None, state=None, hook_error=answer.error)
            fail(failure)
        if denies(run):
            answer.blocked = Block().reason


def _merge(dispatch: Dispatch[Any], agent: RegisteredAgent, run: HookRun, answer: Answer[K], edits: JsonDict) -> None:
    kind = type(answer.config)
    try:
        given = kind.model_validate(edits).merged(run.value) if run.value is not None else kind.model_validate(edits)
    except ValidationError as error:
        answer.error = f"{run.hook.point} of hook {run.hook.name!r} left an invalid context: {error.errors()[0]['msg']}"
        dispatch.trace(run, message=answer.error)
        return
    accepted, warning = _accepted(agent, given)
    answer.config = answer.config.merged(accepted)
    dispatch.trace(run, accepted.changed, warning)


def _accepted(agent: RegisteredAgent, given: K) -> tuple[K, str | None]:
    """Without the fields that may not be used as they are, and a warning that says so."""
    drop: dict[str, str] = {}
    model = cast(str | None, getattr(given, "model", None))
    messages = cast(list[JsonDict] | None, getattr(given, "messages", None))
    active = cast(list[str] | None, getattr(given, "active_tools", None))
    if model is not None and not model_allowed(agent, model):
        drop["model"] = f"model {model!r} is not among Agent.models"
    if messages is not None and not all(message.get("role") in ROLES for message in messages):
        drop["messages"] = "messages are not in OpenAI's chat format (each needs a role)"
    unknown = [name for name in active or [] if name not in agent.tools]
    if unknown:
        drop["active_tools"] = f"active_tools names unknown tools: {', '.join(unknown)}"
    if not drop:
        return given, None
    kept = {name: getattr(given, name) for name in given.changed if name not in drop}
    return type(given).model_construct(set(kept), **kept), "ignored: " + "; ".join(drop.values())


def _step(material: PromptMaterial, step: int) -> Any:
    return next(record for record in material.steps if record.step == step)
