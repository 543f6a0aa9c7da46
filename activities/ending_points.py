"""on_chat_error, on_chat_response and on_turn_end: the hook points at the end of a turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

from temporalio import activity
from temporalio.exceptions import ApplicationError

from everturn.activities.dispatch import Dispatch
from everturn.activities.facts import hook_ref
from everturn.activities.payloads import ErrorInput, HookInput, TurnInput, TurnOutcome, activity_name
from everturn.activities.services import Activities
from everturn.activities.sizes import MAX_NAME_BYTES
from everturn.activities.unrecorded import facts_of, record
from everturn.activities.values import error_text
from everturn.errors import (
    RequestConflict,
    StoreRefused,
    StoreUnavailable,
    TranscriptDamaged,
    TurnNotFound,
    UnknownAgent,
)
from everturn.hooks.contexts import ChatErrorContext, ChatResponseResult, HookContext, TurnEndResult
from everturn.hooks.log import HookLog, cut
from everturn.hooks.points import ON_CHAT_ERROR, ON_CHAT_RESPONSE, ON_TURN_END
from everturn.hooks.registry import BoundHook
from everturn.hooks.runner import HookFailed
from everturn.messages import Message
from everturn.store.records import Ended, TurnFacts
from everturn.turns import StopReason, TurnError, TurnStatus

C = TypeVar("C", bound=HookContext)
MAX_SHOWN_BYTES = 4096
STORE_FAULTS: Final = (RequestConflict, StoreRefused, StoreUnavailable, TranscriptDamaged, TurnNotFound)


class EndingPointActivities(Activities):
    """They run when the outcome is known; only on_chat_error changes something, and that is the error's text."""

    @activity.defn(name=activity_name(ON_CHAT_ERROR))
    async def on_chat_error(self, given: ErrorInput) -> TurnError:
        """The error that clients, the store and the result show. A failing hook leaves the error as it was."""
        chain = self._chain(ON_CHAT_ERROR, given.agent, given.names)
        if not chain:
            return given.error
        turn = await self._failed_turn(given)
        dispatch = Dispatch[ChatErrorContext](
            self._services, given.request_id, ON_CHAT_ERROR, chain, (TurnError, Exception, str), state=turn.state
        )
        shown = given.error
        for hook in chain:
            ref = hook_ref(turn, hook)

            def context(log: HookLog, ref: Any = ref) -> ChatErrorContext:
                return ChatErrorContext(
                    ref,
                    log,
                    stage=given.stage,
                    messages_persisted=turn.begun,
                    classification=given.classification,
                )

            run, _ = await dispatch.run(hook, context, shown)
            after = _shown(run.value, shown)
            dispatch.trace(run, ["error"] if after != shown else [])
            shown = after
        await self._record(dispatch)
        return shown

    async def _failed_turn(self, given: ErrorInput) -> TurnFacts:
        """The turn's facts, with what it has said so far stored; a store that fails does not keep the hooks from being
        asked."""
        turn: TurnFacts | None = None
        try:
            if given.names is None and given.turn is not None:
                await record(self._services, given.turn)
            turn = await self._store.load_turn(given.request_id)
            await self._store.persist_message(given.request_id)
        except STORE_FAULTS as error:
            if turn is None and given.turn is None:
                raise
            activity.logger.warning("the store is of no help to the failed turn %s", given.request_id, exc_info=error)
        return turn or facts_of(cast(TurnInput, given.turn))

    @activity.defn(name=activity_name(ON_CHAT_RESPONSE))
    async def on_chat_response(self, given: HookInput) -> None:
        """Tells the hooks of the stored answer. Raises, to be retried, if one of them failed."""

        def context(ref: Any, log: HookLog, ended: Ended, message: Message | None) -> ChatResponseResult:
            if message is None:
                raise ApplicationError(f"turn {ended.request_id!r} has no assistant message", non_retryable=True)
            return ChatResponseResult(
                ref,
                log,
                message=message,
                status=ended.status,
                stop_reason=ended.stop_reason,
                usage=ended.usage,
                error=ended.error,
            )

        await self._tell(given, ON_CHAT_RESPONSE, context)

    @activity.defn(name=activity_name(ON_TURN_END))
    async def on_turn_end(self, given: HookInput) -> None:
        """Tells the hooks of the ending, whichever. Raises, to be retried, if one of them failed."""

        def context(ref: Any, log: HookLog, ended: Ended, message: Message | None) -> TurnEndResult:
            return TurnEndResult(
                ref,
                log,
                message=message,
                status=ended.status,
                stop_reason=ended.stop_reason,
                usage=ended.usage,
                error=ended.error,
            )

        await self._tell(given, ON_TURN_END, context)

    async def _tell(
        self, given: HookInput, point: str, make: Callable[[Any, HookLog, Ended, Message | None], HookContext]
    ) -> None:
        chain = self._chain(point, given.agent, given.names)
        if not chain:
            return
        turn, ended = await self._ended_turn(given)
        dispatch = Dispatch[HookContext](self._services, given.request_id, point, chain, state=turn.state)
        failures: list[HookFailed] = []
        for hook in await self._due(given, point, chain):

            def context(log: HookLog, hook: BoundHook = hook) -> HookContext:
                return make(hook_ref(turn, hook), log, ended, ended.message)

            run, _ = await dispatch.run(hook, context)
            dispatch.trace(run)
            if not run.ok:
                failures.append(run.failure())
        await self._record(dispatch)
        if failures:
            raise ApplicationError("; ".join(str(failure) for failure in failures), type="HookFailed")

    async def _ended_turn(self, given: HookInput) -> tuple[TurnFacts, Ended]:
        if given.unstored is not None:
            return facts_of(given.unstored.turn), _ended(given.unstored.outcome)
        turn = await self._store.load_turn(given.request_id)
        ended = await self._store.ended(given.request_id)
        if ended is None:
            raise ApplicationError(f"turn {given.request_id!r} is not over", non_retryable=True)
        return turn, ended

    async def _due(self, given: HookInput, point: str, chain: Sequence[BoundHook]) -> list[BoundHook]:
        """On a retry, only the hooks that have not succeeded yet."""
        if activity.info().attempt == 1 or given.unstored is not None:
            return list(chain)
        info = await self._store.inspect(given.request_id)
        traces = info.hook_traces if info else []
        done = {trace.hook for trace in traces if trace.point == point and trace.outcome == "ok"}
        return [hook for hook in chain if hook.name not in done]

    def _chain(self, point: str, agent: str, names: list[str] | None) -> list[BoundHook]:
        """The point's hooks. An agent that nobody knows has none: the turn may have failed over that very name."""
        try:
            return self._services.agents.get(agent).chain(point, names)
        except UnknownAgent:
            if names is None:
                return []
            raise

    async def _record(self, dispatch: Dispatch[C]) -> None:
        """The turn is over: what its hooks did is worth a line in the log if the store cannot take it."""
        try:
            await dispatch.record()
        except STORE_FAULTS as error:
            activity.logger.warning("what the hooks did is not stored: %s", dispatch.traces, exc_info=error)


def _ended(outcome: TurnOutcome) -> Ended:
    return Ended(
        outcome.request_id,
        outcome.thread_id,
        cast(TurnStatus, outcome.status),
        cast(StopReason | None, outcome.stop_reason),
        outcome.error,
        None,
        outcome.usage,
        outcome.steps,
    )


def _shown(answer: object, before: TurnError) -> TurnError:
    if answer is None:
        return before
    if isinstance(answer, TurnError):
        return TurnError(cut(answer.type, MAX_NAME_BYTES), cut(answer.message, MAX_SHOWN_BYTES))
    if isinstance(answer, str):
        return TurnError(before.type, cut(answer, MAX_SHOWN_BYTES))
    if isinstance(answer, BaseException):
        return TurnError(type(answer).__name__, cut(str(answer) or error_text(answer), MAX_SHOWN_BYTES))
    return before
