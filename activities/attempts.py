"""After a failed model call: try again, go on with the next model, or give up."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from temporalio.exceptions import ApplicationError

from everturn.activities.classify import Classified, FailedCall, classified
from everturn.activities.events import STREAM_STALLED, emit
from everturn.activities.models.failures import FailureKind, ModelFailure
from everturn.activities.payloads import StepInput
from everturn.activities.running import Interrupted, stopped_here
from everturn.activities.services import Services
from everturn.activities.settings import StepSettings
from everturn.hooks.registry import RegisteredAgent
from everturn.store.records import Opening, PromptMaterial
from everturn.turns import TurnError

MODEL_ATTEMPTS: Final = 5
"""Failed calls of one model after which it is given up. Lost or stopped workers do not count."""
RETRY_FIRST: Final = 1.0
RETRY_MAX: Final = 30.0
"""Seconds before the next attempt when the provider names none: doubling from the first to the last."""


async def after_failure(
    services: Services,
    agent: RegisteredAgent,
    given: StepInput,
    opening: Opening,
    material: PromptMaterial,
    settings: StepSettings,
    failure: ModelFailure,
) -> ApplicationError:
    """Notes the failure; the error that tells Temporal whether to try again, and when.

    A model that is given up is followed by the next of `Model.fallbacks`, at once and with attempts of its own. One
    that a hook names follows at once too, but shares the attempts of the model before it. A prompt that is too long
    goes to the workflow instead, which compacts the thread.
    """
    if failure.code == "stalled":
        emit(STREAM_STALLED, request_id=given.request_id, step=given.step, attempt=opening.attempt)
    last = opening.failures + 1 >= MODEL_ATTEMPTS
    call = FailedCall(given, material.turn, opening.attempt, failure, settings.tried, last)
    try:
        found = await classified(services, agent, call)
    except Interrupted as stop:
        if stop.why != "cancel":
            return stopped_here()
        found = Classified("fatal")  # the turn is being cancelled: nothing follows this call
    retry_in = _retry_in(found.kind, opening.failures, failure, last=last)
    falls_back = retry_in is None and found.kind != "context_overflow" and settings.has_fallback
    gives_up = found.next_model is not None or falls_back
    if gives_up:
        retry_in = 0.0
    await services.store.fail_attempt(
        given.request_id,
        given.step,
        opening.attempt,
        error=TurnError(failure.code, failure.message),
        retry_in=retry_in,
        detail=failure.detail,
        gave_up=gives_up,
        next_model=found.next_model,
    )
    return ApplicationError(
        failure.message,
        {"classification": found.kind},
        type=failure.code,
        non_retryable=retry_in is None,
        next_retry_delay=timedelta(seconds=retry_in) if retry_in is not None else None,
    )


def _retry_in(kind: FailureKind, failures: int, failure: ModelFailure, *, last: bool) -> float | None:
    """Seconds until the same model is asked again; None if it is not."""
    if kind not in ("rate_limit", "transient") or last:
        return None
    if failure.retry_after is not None:
        return failure.retry_after
    return min(RETRY_FIRST * float(2**failures), RETRY_MAX)
