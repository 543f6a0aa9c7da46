"""Asks the author's own stop conditions of a turn."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.activities.services import Services
from everturn.hooks.contexts import StepFacts
from everturn.hooks.log import HookLog
from everturn.hooks.references import UnresolvedReference, resolve
from everturn.hooks.registry import BoundHook
from everturn.hooks.runner import HookRun, run_hook
from everturn.store.records import HookTrace

POINT = "stop_when"


async def asks_to_stop(
    services: Services, request_id: str, step: int, references: Sequence[str], steps: Sequence[StepFacts]
) -> bool:
    """True if one condition is met. One that fails is traced and counts as not met: max_steps still bounds the turn."""
    traces: list[HookTrace] = []
    stop = False
    for reference in references:
        run = await _asked(services, reference, steps)
        stop = stop or (run.ok and bool(run.value))
        traces.append(
            HookTrace(
                request_id,
                POINT,
                reference,
                run.outcome,
                run.duration_ms,
                step=step,
                message=run.message,
                changed=["stop"] if run.value else [],
            )
        )
    await services.store.record_traces(traces)
    return stop


async def _asked(services: Services, reference: str, steps: Sequence[StepFacts]) -> HookRun:
    try:
        condition = resolve(reference)
    except UnresolvedReference as error:
        return HookRun(BoundHook(reference, POINT, resolve), "invalid", message=str(error))
    hook = BoundHook(reference, POINT, condition)
    return await run_hook(hook, HookLog(), tuple(steps), answers=(bool,), executor=services.threads)
