"""The client's calls to Temporal: start, signal, describe, wait."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio.client import (
    Client,
    ScheduleActionStartWorkflow,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import TypedSearchAttributes, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, FailureError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from everturn.activities.payloads import WORKFLOW, Begun, CancelRequest, TurnInput, TurnOutcome
from everturn.activities.settling import LOST, settle_lost
from everturn.activities.turn_workflows import Found, find_workflow
from everturn.client.attributes import SearchAttributes, of_turn, priority_of
from everturn.client.request import check_sent, details, summary
from everturn.connection import place_of, temporal_error
from everturn.errors import BadInput, RequestConflict, TemporalUnavailable, ThreadBusy, TurnNotFound
from everturn.ids import workflow_id
from everturn.store.store import Store
from everturn.turns import TurnError, Usage, WaitOutcome
from everturn.workflows.timeouts import WORKFLOW_TASK_TIMEOUT

T = TypeVar("T")
DIGEST_MEMO: Final = "everturn_digest"


class TemporalTurns:
    """Turns as Temporal knows them. Every call has a deadline of `rpc_timeout` seconds, except waiting for an end."""

    def __init__(self, client: Client, task_queue: str, rpc_timeout: float) -> None:
        self.client = client
        self._task_queue = task_queue
        self.rpc_timeout = timedelta(seconds=rpc_timeout)
        self._attributes = SearchAttributes(client)

    async def start(self, turn: TurnInput, *, draft: bool) -> bool:
        """Starts the turn; False if Temporal knows the same request already.

        draft: the message is in the store and stays out of the workflow's input. Raises RequestConflict or
        TemporalUnavailable.
        """
        indexed = await self._call(self._attributes.registered())
        user = turn.principal.get("id") if turn.principal else None
        given = dataclasses.replace(turn, indexed=indexed, parts=None if draft else turn.parts)
        check_sent(given)
        starting = self.client.start_workflow(
            WORKFLOW,
            given,
            id=workflow_id(turn.request_id),
            task_queue=self._task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            task_timeout=WORKFLOW_TASK_TIMEOUT,
            memo={DIGEST_MEMO: turn.digest},
            search_attributes=of_turn(turn.thread_id, turn.agent, user, turn.tenant_id) if indexed else None,
            static_summary=summary(turn, previews=turn.previews),
            static_details=details(turn, previews=turn.previews),
            priority=priority_of(turn.tenant_id),
            rpc_timeout=self.rpc_timeout,
        )
        try:
            await self._call(starting)
        except WorkflowAlreadyStartedError as error:
            known = await self._digest(turn.request_id)
            if known is not None and known != turn.digest:
                raise RequestConflict(turn.request_id) from error
            return False
        return True

    async def scheduled_start(self, turn: TurnInput, schedule_id: str) -> ScheduleActionStartWorkflow:
        """The start of a turn by a schedule; Temporal adds the time to its workflow id."""
        indexed = await self._call(self._attributes.registered())
        user = turn.principal.get("id") if turn.principal else None
        given = dataclasses.replace(turn, indexed=indexed)
        check_sent(given)
        named = dataclasses.replace(turn, request_id=f"{schedule_id}-<time>")
        attributes = of_turn(turn.thread_id, turn.agent, user, turn.tenant_id)
        return ScheduleActionStartWorkflow(
            WORKFLOW,
            given,
            id=workflow_id(schedule_id),
            task_queue=self._task_queue,
            task_timeout=WORKFLOW_TASK_TIMEOUT,
            memo={DIGEST_MEMO: turn.digest},
            typed_search_attributes=attributes if indexed else TypedSearchAttributes.empty,
            static_summary=summary(turn, previews=turn.previews),
            static_details=details(named, previews=turn.previews),
            priority=priority_of(turn.tenant_id),
        )

    async def admission(self, request_id: str) -> Begun | None:
        """Waits until a worker has admitted or refused the turn; None if it did neither within the deadline."""
        handle = self.client.get_workflow_handle(workflow_id(request_id))
        try:
            begun: Begun = await handle.execute_update("admission", result_type=Begun, rpc_timeout=self.rpc_timeout)
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            _raise_cancellation(error)
            return None
        except WorkflowUpdateFailedError:
            return await self._refusal(request_id)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:  # it ended before the question arrived
                return await self._refusal(request_id)
            raise temporal_error(error, place_of(self.client)) from error
        return begun

    async def _refusal(self, request_id: str) -> Begun | None:
        """What became of a turn that ended before it could say: refused, or run to its end."""
        outcome = await self.outcome(request_id)
        busy = outcome.error is not None and outcome.error.type == ThreadBusy.__name__
        return Begun("busy", error=outcome.error) if busy else None

    async def answer(self, request_id: str, update: str, given: object) -> WaitOutcome:
        """Answers a waiting tool call. Raises BadInput if the arguments of an approval do not fit the tool."""
        handle = self.client.get_workflow_handle(workflow_id(request_id))
        try:
            await handle.execute_update(update, given, rpc_timeout=self.rpc_timeout)
        except WorkflowUpdateFailedError as error:
            return _unanswered(error)
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            _raise_cancellation(error)
            reason = f"no worker took the answer within {self.rpc_timeout.total_seconds():g} s"
            raise TemporalUnavailable(place_of(self.client).target, reason) from error
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return "not_found"
            raise temporal_error(error, place_of(self.client)) from error
        return "accepted"

    async def cancel(self, request_id: str, reason: str | None) -> bool:
        """Signals the turn; False if no such workflow runs."""
        handle = self.client.get_workflow_handle(workflow_id(request_id))
        signalling = handle.signal("cancel_chat", CancelRequest(reason), rpc_timeout=self.rpc_timeout)
        return await self._found(signalling)

    async def find(self, request_id: str) -> Found | None:
        """The turn's workflow; None if Temporal does not know the turn."""
        return await self._call(find_workflow(self.client, request_id, self.rpc_timeout))

    async def settle(self, store: Store, request_id: str, found: Found) -> None:
        """Ends a turn whose workflow is gone: see `settle_lost`."""
        await self._call(settle_lost(self.client, store, request_id, found.task_queue, found.gone or ""))

    async def answer_of(self, request_id: str) -> TurnOutcome:
        """`outcome`; for a turn whose message another turn answers, too, the outcome of that turn."""
        outcome = await self.outcome(request_id)
        joined = outcome.superseded_by if outcome.joined else None
        return await self.outcome(joined) if joined is not None else outcome

    async def outcome(self, request_id: str) -> TurnOutcome:
        """Waits for the workflow's end. A turn without a result of its own (terminated, say) counts as lost."""
        handle = self.client.get_workflow_handle(workflow_id(request_id), result_type=TurnOutcome)
        try:
            outcome: TurnOutcome = await handle.result()
        except WorkflowFailureError as error:
            return _failed_outcome(request_id, error)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                raise TurnNotFound(request_id) from error
            raise temporal_error(error, place_of(self.client)) from error
        return outcome

    async def _digest(self, request_id: str) -> str | None:
        handle = self.client.get_workflow_handle(workflow_id(request_id))
        described = await self._call(handle.describe(rpc_timeout=self.rpc_timeout))
        value: Any = await described.memo_value(DIGEST_MEMO, None)
        return value if isinstance(value, str) else None

    async def _found(self, call: Awaitable[object]) -> bool:
        try:
            await call
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return False
            raise temporal_error(error, place_of(self.client)) from error
        return True

    async def _call(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except RPCError as error:
            raise temporal_error(error, place_of(self.client)) from error


def _raise_cancellation(error: WorkflowUpdateRPCTimeoutOrCancelledError) -> None:
    """The SDK reports the cancellation of the calling task as a timeout; it has to stay a cancellation."""
    if isinstance(error.__cause__, asyncio.CancelledError):
        raise error.__cause__


def _unanswered(error: WorkflowUpdateFailedError) -> WaitOutcome:
    refused: BaseException | None = error.cause
    if isinstance(refused, ApplicationError) and refused.type == "NotPending":
        return "not_found"
    if isinstance(refused, ApplicationError) and refused.type == "AlreadyResolved":
        return "already_resolved"
    while isinstance(refused, FailureError) and refused.cause is not None:
        refused = refused.cause
    raise BadInput(str(refused)) from error


def _failed_outcome(request_id: str, error: WorkflowFailureError) -> TurnOutcome:
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.details:
        given = cause.details[0]
        if isinstance(given, dict) and given.get("request_id") == request_id:  # pyright: ignore[reportUnknownMemberType]
            return _from_json(given)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(cause, ApplicationError):
        return TurnOutcome(request_id, "", "error", "error", error=TurnError(cause.type or "internal", cause.message))
    return TurnOutcome(request_id, "", "error", "error", error=TurnError(LOST, f"the workflow ended early: {cause}"))


def _from_json(given: dict[str, Any]) -> TurnOutcome:
    fields = dict(given)
    fields["usage"] = Usage(**fields.get("usage", {}))
    fields["error"] = TurnError(**fields["error"]) if fields.get("error") else None
    return TurnOutcome(**fields)
