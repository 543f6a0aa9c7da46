"""What kind of failure a model call met: the author's word first, then the default table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast, get_args

from everturn.activities.dispatch import Dispatch
from everturn.activities.facts import hook_ref
from everturn.activities.models.failures import FailureKind, ModelFailure
from everturn.activities.models.originals import original
from everturn.activities.payloads import StepInput
from everturn.activities.running import until_interrupted
from everturn.activities.services import Services
from everturn.activities.settings import model_allowed
from everturn.hooks.contexts import ChatErrorContext
from everturn.hooks.decisions import NextModel
from everturn.hooks.log import HookLog
from everturn.hooks.points import CLASSIFY_CHAT_ERROR
from everturn.hooks.registry import BoundHook, RegisteredAgent
from everturn.store.records import TurnFacts

KINDS: Final = frozenset(get_args(FailureKind))
CANCEL_GRACE: Final = 1.0
"""Seconds that a hook gets to end by itself once its turn is cancelled: it may be the one that cancels it."""


@dataclass(frozen=True, slots=True)
class Classified:
    """What the hooks make of a failed call. next_model: the one to go on with, None if none was named."""

    kind: FailureKind
    next_model: str | None = None


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A model call that failed. tried: the models asked in its step, its own last. last: no further call may follow."""

    given: StepInput
    turn: TurnFacts
    attempt: int
    failure: ModelFailure
    tried: tuple[str, ...]
    last: bool


async def classified(services: Services, agent: RegisteredAgent, call: FailedCall) -> Classified:
    """The first classification that a hook of the manifest gives, and the first usable model that one names; `unknown`
    and None leave it to the default table.

    Raises Interrupted if the turn is cancelled and a hook does not come to its end soon.
    """
    chain = agent.chain(CLASSIFY_CHAT_ERROR, call.given.classify)
    if not chain:
        return Classified(call.failure.kind)
    with services.running.enter(call.given.request_id) as flag:
        work = _ask(services, agent, chain, call)
        return await until_interrupted(work, flag, stop_on_shutdown=False, grace=CANCEL_GRACE)


async def _ask(services: Services, agent: RegisteredAgent, chain: Sequence[BoundHook], call: FailedCall) -> Classified:
    """Asks each hook, with what those before it made of the failure, until one names a model."""
    error = await original(call.failure, call.tried[-1])
    request_id, step = call.given.request_id, call.given.step
    dispatch = Dispatch[ChatErrorContext](
        services, request_id, CLASSIFY_CHAT_ERROR, chain, (str, NextModel), step=step, state=call.turn.state
    )
    found: FailureKind | None = None
    next_model: str | None = None
    for hook in chain:

        def context(log: HookLog, hook: BoundHook = hook, kind: FailureKind | None = found) -> ChatErrorContext:
            return ChatErrorContext(
                hook_ref(call.turn, hook, f"{step}:{call.attempt}"),
                log,
                stage="stream",
                messages_persisted=True,
                classification=kind or call.failure.kind,
                tried=call.tried,
            )

        run, _ = await dispatch.run(hook, context, error)
        unusable = _unusable(agent, call, run.value)
        if run.value is None or unusable is not None:
            dispatch.trace(run, message=unusable)
        elif isinstance(run.value, NextModel):
            next_model = run.value.model
            dispatch.trace(run, ["model"])
            break
        else:
            dispatch.trace(run, message=f"ignored: the failure counts as {found} already" if found else None)
            found = found or (cast(FailureKind, run.value) if run.value != "unknown" else None)
    await dispatch.record()
    return Classified(found or call.failure.kind, next_model)


def _unusable(agent: RegisteredAgent, call: FailedCall, answer: str | NextModel | None) -> str | None:
    """Why an answer of a hook does not count."""
    if isinstance(answer, str) and answer not in KINDS:
        return f"ignored: {answer[:100]!r} is no classification"
    if not isinstance(answer, NextModel):
        return None
    if call.last:
        return f"ignored: model {answer.model!r} comes too late, too many calls of the step have failed"
    if answer.model == call.tried[-1]:
        return f"ignored: {answer.model!r} is the model that has failed"
    return None if model_allowed(agent, answer.model) else f"ignored: model {answer.model!r} is not among Agent.models"
