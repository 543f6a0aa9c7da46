"""before_turn, before_step and on_step_finish: the hook points around the model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError
from temporalio import activity

from everturn.activities.dispatch import Dispatch, denies, fail, fails_turn
from everturn.activities.facts import hook_ref, step_facts
from everturn.activities.payloads import HookInput, TurnDecision, activity_name
from everturn.activities.requesting import transcript
from everturn.activities.services import Activities
from everturn.activities.settings import STEP_INDEX_KEY, STEP_KEY, TURN_KEY, model_allowed, turn_config
from everturn.errors import BadInput
from everturn.hooks.contexts import HookContext, StepContext, StepResult, TurnContext
from everturn.hooks.decisions import Block, Config, StepConfig, TurnConfig
from everturn.hooks.log import HookLog, cut
from everturn.hooks.points import BEFORE_STEP, BEFORE_TURN, ON_STEP_FINISH
from everturn.hooks.registry import BoundHook, RegisteredAgent
from everturn.hooks.runner import HookRun, edited
from everturn.messages import dump_json
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
            ref = hook_ref(material.turn, hook)
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
            "messages": transcript(material, turn.messages),
        }
        steps = [step_facts(record) for record in material.steps]

        def context(hook: BoundHook, now: JsonDict, log: HookLog) -> StepContext:
            ref = hook_ref(material.turn, hook, str(step))
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

            def context(log: HookLog, hook: BoundHook = hook) -> StepResult:
                return StepResult(hook_ref(material.turn, hook, str(step)), log, facts=copy.deepcopy(facts))

            run, _ = await dispatch.run(hook, context)
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
            run, seen = await dispatch.run(hook, partial(context, hook, now))
            if not run.ok:
                await self._refuse(dispatch, run, answer)
            elif isinstance(run.value, Block):
                answer.blocked = cut(run.value.reason or Block().reason, MAX_REASON_BYTES)
                dispatch.trace(run, ["block"])
            else:
                given = _given(answer.config, run, edited(now, seen) if hook.added else {})
                if isinstance(given, HookRun):
                    await self._refuse(dispatch, given, answer)
                else:
                    accepted, warning = _accepted(agent, given)
                    answer.config = answer.config.merged(accepted)
                    dispatch.trace(run, accepted.changed, warning)
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


def _given(config: K, run: HookRun, edits: JsonDict) -> K | HookRun:
    """What a run answered, its in-place edits first; the run as `invalid` if those cannot be used."""
    try:
        given = type(config).model_validate(edits)
        dump_json(given.as_json(), "the edited context")
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors()[0]["loc"])
        return _invalid(run, f"left an invalid context: {field}: {error.errors()[0]['msg']}")
    except (BadInput, PydanticSerializationError) as error:
        return _invalid(run, f"left a context that has no JSON form: {error}")
    return given.merged(run.value) if run.value is not None else given


def _invalid(run: HookRun, message: str) -> HookRun:
    return replace(run, outcome="invalid", value=None, message=message)


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
    warnings = list(drop.values())
    if unknown:
        warnings.append(f"active_tools names unknown tools: {', '.join(unknown)}")
    if not warnings:
        return given, None
    kept = {name: getattr(given, name) for name in given.changed if name not in drop}
    return type(given).model_construct(set(kept), **kept), "ignored: " + "; ".join(warnings)


def _step(material: PromptMaterial, step: int) -> Any:
    return next(record for record in material.steps if record.step == step)
