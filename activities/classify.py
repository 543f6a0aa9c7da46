"""What kind of failure a model call met: the author's word first, then the default table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast, get_args

from everturn.activities.dispatch import Dispatch
from everturn.activities.facts import hook_ref
from everturn.activities.models.failures import FailureKind, ModelFailure
from everturn.activities.models.originals import original
from everturn.activities.payloads import StepInput
from everturn.activities.running import until_interrupted
from everturn.activities.services import Services
from everturn.hooks.contexts import ChatErrorContext
from everturn.hooks.log import HookLog
from everturn.hooks.points import CLASSIFY_CHAT_ERROR
from everturn.hooks.registry import BoundHook, RegisteredAgent
from everturn.store.records import TurnFacts

KINDS: Final = frozenset(get_args(FailureKind))
CANCEL_GRACE: Final = 1.0
"""Seconds that a hook gets to end by itself once its turn is cancelled: it may be the one that cancels it."""


async def classified(
    services: Services,
    agent: RegisteredAgent,
    given: StepInput,
    turn: TurnFacts,
    attempt: int,
    failure: ModelFailure,
    model: str,
) -> FailureKind:
    """The first classification that a hook of the manifest gives; `unknown` and None leave it to the default table.

    Raises Interrupted if the turn is cancelled and a hook does not come to its end soon.
    """
    chain = agent.chain(CLASSIFY_CHAT_ERROR, given.classify)
    if not chain:
        return failure.kind
    work = _ask(services, chain, given, turn, attempt, failure, model)
    with services.running.enter(given.request_id) as flag:
        return await until_interrupted(work, flag, stop_on_shutdown=False, grace=CANCEL_GRACE)


async def _ask(
    services: Services,
    chain: Sequence[BoundHook],
    given: StepInput,
    turn: TurnFacts,
    attempt: int,
    failure: ModelFailure,
    model: str,
) -> FailureKind:
    error = await original(failure, model)
    dispatch = Dispatch[ChatErrorContext](
        services, given.request_id, CLASSIFY_CHAT_ERROR, chain, (str,), step=given.step, state=turn.state
    )
    kind = failure.kind
    for hook in chain:

        def context(log: HookLog, hook: BoundHook = hook) -> ChatErrorContext:
            ref = hook_ref(turn, hook, f"{given.step}:{attempt}")
            return ChatErrorContext(ref, log, stage="stream", messages_persisted=True, classification=failure.kind)

        run, _ = await dispatch.run(hook, context, error)
        unusable = run.value is not None and run.value not in KINDS
        dispatch.trace(run, message=f"ignored: {str(run.value)[:100]!r} is no classification" if unusable else None)
        if run.ok and run.value in KINDS and run.value != "unknown":
            kind = cast(FailureKind, run.value)
            break
    await dispatch.record()
    return kind
