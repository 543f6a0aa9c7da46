"""Runs the hooks of one point one after the other, applies the failure policy, and records every run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NoReturn, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from everturn.activities.running import within_shutdown
from everturn.activities.services import Services
from everturn.errors import BadInput
from everturn.hooks.contexts import HookContext
from everturn.hooks.hook import MAX_RETURN_BYTES
from everturn.hooks.registry import BoundHook
from everturn.hooks.runner import HookFailed, HookRun, log_for, run_hook
from everturn.messages import json_size
from everturn.store.records import HookTrace
from everturn.turns import JsonDict

C = TypeVar("C", bound=HookContext)
HOOK_FAILED = "HookFailed"


@dataclass
class Dispatch(Generic[C]):
    """One visit of one point. Each run gets a fresh context: a later hook sees what earlier ones changed, and none can
    spoil another's copy."""

    services: Services
    request_id: str
    point: str
    chain: Sequence[BoundHook]
    answers: tuple[type, ...] = ()
    step: int | None = None
    tool_call_id: str | None = None
    traces: list[HookTrace] = field(default_factory=list[HookTrace])
    state: JsonDict = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        self._stored, self.state = self.state, copy.deepcopy(self.state)

    async def run(self, hook: BoundHook, fresh: Callable[..., C], *lead: object) -> tuple[HookRun, C]:
        """One run; its trace is kept until `record`. `lead` are arguments before the context. Raises ApplicationError,
        to be retried elsewhere, if this worker stops over it."""
        log = log_for(hook)
        context = fresh(log)
        context.state.update(copy.deepcopy(self.state))
        work = run_hook(hook, log, *lead, context, answers=self.answers, executor=self.services.threads)
        run = await (within_shutdown(work, self.services.grace) if activity.info().is_local else work)
        return self.adopted(run, context), context

    def adopted(self, run: HookRun, context: HookContext) -> HookRun:
        """Keeps the state that a successful run leaves; the run, or the same one as failed by an unusable state."""
        if not run.ok:
            return run
        try:
            size = json_size(context.state, "ctx.state")
        except BadInput as error:
            return replace(run, outcome="invalid", value=None, message=str(error))
        if size > MAX_RETURN_BYTES:
            message = f"left {size:,} bytes in ctx.state; the limit is {MAX_RETURN_BYTES:,}"
            return replace(run, outcome="oversize", value=None, message=message)
        self.state.update(copy.deepcopy(context.state))
        return run

    def trace(self, run: HookRun, changed: Sequence[str] = (), message: str | None = None) -> None:
        self.traces.append(
            HookTrace(
                request_id=self.request_id,
                point=self.point,
                hook=run.hook.name,
                outcome=run.outcome,
                duration_ms=run.duration_ms,
                step=self.step,
                tool_call_id=self.tool_call_id,
                message=message or run.message,
                logs=run.logs,
                changed=list(changed),
            )
        )

    async def record(self) -> None:
        """Writes the traces and what changed in the turn's state; to be called once, also when a hook failed.

        Only what changed: the hooks of another tool call may have written other keys meanwhile.
        """
        store = self.services.store
        if self.traces:
            await store.record_traces(self.traces)
        unset = object()
        patch = {key: value for key, value in self.state.items() if self._stored.get(key, unset) != value}
        if patch:
            await store.merge_state(self.request_id, patch)


def fails_turn(run: HookRun) -> bool:
    """A failed method of the agent fails the turn; an added hook only if it says so."""
    return not run.ok and (run.hook.owner is None or run.hook.owner.on_error == "raise")


def denies(run: HookRun) -> bool:
    return not run.ok and run.hook.owner is not None and run.hook.owner.on_error == "deny"


def fail(failure: HookFailed) -> NoReturn:
    """Ends the turn: the hook's failure is final and is not retried."""
    raise ApplicationError(str(failure), type=HOOK_FAILED, non_retryable=True) from failure
