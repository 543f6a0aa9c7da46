"""The first and the last step of a turn, and what stands outside of its loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

from temporalio import activity
from temporalio.exceptions import ApplicationError

from everturn.activities.events import REQUEST_FAILED, emit
from everturn.activities.payloads import (
    BeginInput,
    Begun,
    FinishInput,
    Predecessor,
    TurnInput,
    TurnOutcome,
    activity_name,
)
from everturn.activities.previews import RESULT_BYTES, preview, small_enough
from everturn.activities.services import Activities, Services
from everturn.activities.settling import settle_lost
from everturn.activities.turn_tools import CLIENT_TOOLS_KEY
from everturn.activities.turn_workflows import NEVER_STARTED, find_workflow, stop, wake
from everturn.activities.unrecorded import principal_of, record, trigger_of
from everturn.activities.user_messages import rewriting
from everturn.errors import (
    BadInput,
    EverturnError,
    NothingToContinue,
    RequestConflict,
    StoreRefused,
    TranscriptDamaged,
    TurnNotFound,
    UnknownAgent,
)
from everturn.hooks.client_tools import client_tool_specs
from everturn.hooks.log import cut
from everturn.hooks.points import AFTER_TOOL_CALL, BEFORE_TOOL_CALL
from everturn.hooks.registry import RegisteredAgent, tool_patterns
from everturn.messages import user_parts
from everturn.policies import policy_text
from everturn.store.records import Admission, Admitted, Ended, Ending, Room
from everturn.turns import TurnError

SUPERSEDED: Final = "a later message took its place"
"""Why a turn was stopped for one with policy "latest"."""


class TurnActivities(Activities):
    """begin, finish, interrupt and check_predecessor. room: how many turns may wait."""

    def __init__(self, services: Services, room: Room) -> None:
        super().__init__(services)
        self._room = room

    @activity.defn(name=activity_name("begin"))
    async def begin(self, given: BeginInput) -> Begun:
        """Records the turn, takes its thread or a place in the queue, and fixes its hook manifest."""
        turn = given.turn
        agent: RegisteredAgent | None = None
        unknown: TurnError | None = None
        try:
            agent = self._services.agents.get(turn.agent)
        except UnknownAgent as error:
            unknown = TurnError("UnknownAgent", str(error))
        admission = _admission(given, agent, self._room)
        try:
            admitted = await self._store.begin(admission)
        except BadInput as error:
            raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from error
        await self._make_way(admitted)
        if unknown is not None and admitted.outcome == "run":
            return Begun("unknown_agent", error=unknown)
        unusable = _unusable_tools(turn, agent) if admitted.outcome == "run" else None
        if unusable is not None:
            return replace(_begun(turn, admitted, agent), outcome="bad_request", error=unusable)
        return _begun(turn, admitted, agent)

    @activity.defn(name=activity_name("finish"))
    async def finish(self, given: FinishInput) -> TurnOutcome:
        """Stores how the turn ended, frees its thread, and wakes the next turn of the thread."""
        ending = Ending(
            given.request_id,
            cast(Any, given.status),
            cast(Any, given.stop_reason),
            given.error,
            given.text,
            given.reason,
            given.without_message,
        )
        try:
            if given.turn is not None:
                await record(self._services, given.turn)
            ended = await self._store.finish(ending)
        except (RequestConflict, StoreRefused, TranscriptDamaged, TurnNotFound) as error:
            _tell_unstored(given, error)
            raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from error
        if given.status == ended.status == "error":
            _tell_failure(given, ended.error, thread_id=ended.thread_id, messages_persisted=ended.begun)
        if ended.next_request_id is not None:
            await wake(activity.client(), ended.next_request_id)
        return _outcome(ended, given)

    @activity.defn(name=activity_name("interrupt"))
    async def interrupt(self, request_id: str) -> bool:
        """Stops what runs for this turn in this process; False if nothing does."""
        return self._services.running.interrupt(request_id)

    @activity.defn(name=activity_name("check_predecessor"))
    async def check_predecessor(self, given: Predecessor) -> bool:
        """Settles the turn that this one waits for, if nothing executes it any more. True if the queue may move."""
        ended = await self._store.ended(given.behind)
        if ended is not None:
            return True
        found = await find_workflow(activity.client(), given.behind)
        reason = found.gone if found else NEVER_STARTED
        if reason is None:
            return False
        queue = found.task_queue if found else activity.info().task_queue
        await settle_lost(activity.client(), self._store, given.behind, queue, reason)
        return True

    async def _make_way(self, admitted: Admitted) -> None:
        """Tells the turns whose place this one took, and stops the running one if it is in the way."""
        for request_id in admitted.superseded:
            await wake(activity.client(), request_id)
        if admitted.cancel is not None:
            await stop(activity.client(), admitted.cancel, SUPERSEDED)


def _admission(given: BeginInput, agent: RegisteredAgent | None, room: Room) -> Admission:
    turn = given.turn
    return Admission(
        request_id=turn.request_id,
        thread_id=turn.thread_id,
        agent=turn.agent,
        digest=turn.digest,
        policy=policy_text(turn.policy),
        trigger=trigger_of(turn),
        submitted_at=given.submitted_at,
        asked_at=given.asked_at,
        run_id=given.run_id,
        parts=user_parts(turn.parts) if turn.parts is not None else None,
        draft=turn.parts is None and turn.trigger != "continue",
        rewrite=rewriting(agent),
        after=turn.after,
        message_metadata=turn.message_metadata,
        body=turn.body,
        principal=principal_of(turn),
        tenant_id=turn.tenant_id,
        config={CLIENT_TOOLS_KEY: turn.client_tools} if turn.client_tools else None,
        manifest=agent.manifest if agent else None,
        room=room,
        withdrawn=given.withdrawn,
    )


def _unusable_tools(turn: TurnInput, agent: RegisteredAgent | None) -> TurnError | None:
    """Why the client tools of a request cannot be used: another client let them through, or the agent has the name."""
    try:
        names = [spec["name"] for spec in client_tool_specs(turn.client_tools)]
    except BadInput as error:
        return TurnError("BadInput", str(error))
    taken = [name for name in names if agent is not None and name in agent.tools]
    if not taken:
        return None
    return TurnError(
        "BadInput", f"client tool {taken[0]!r}: agent {turn.agent!r} has a tool of that name; rename yours"
    )


def _begun(turn: TurnInput, admitted: Admitted, agent: RegisteredAgent | None) -> Begun:
    error = admitted.error
    if admitted.outcome == "nothing_to_continue":
        error = TurnError("NothingToContinue", NothingToContinue(turn.thread_id).args[0])
    elif admitted.outcome == "conflict":
        error = TurnError("RequestConflict", f"request_id {turn.request_id!r} was used for another request")
    patterns: dict[str, list[str] | None] = {}
    if agent is not None:
        for point in (BEFORE_TOOL_CALL, AFTER_TOOL_CALL):
            chain = agent.chain(point, admitted.manifest.get(point, []))
            if chain:
                patterns[point] = tool_patterns(chain)
    return Begun(
        outcome=admitted.outcome,
        behind=admitted.behind,
        points=admitted.manifest,
        tool_patterns=patterns,
        max_steps=agent.agent.max_steps if agent else 1,
        overflow_retries=agent.session.max_retries if agent and agent.session.reactive else 0,
        compactions=agent.session.max_compactions if agent and agent.session.token_limit is not None else 0,
        model=agent.model.name if agent else "",
        error=error,
        hold_until=admitted.hold_until,
    )


def _tell_failure(
    given: FinishInput, error: TurnError | None, *, thread_id: str | None, messages_persisted: bool
) -> None:
    emit(
        REQUEST_FAILED,
        request_id=given.request_id,
        thread_id=thread_id,
        stage=given.stage,
        messages_persisted=messages_persisted,
        classification=given.classification,
        error=error.type if error else None,
    )


def _tell_unstored(given: FinishInput, error: EverturnError) -> None:
    """A failed turn is told of once: here only if nobody is going to try again to store its end."""
    tried_again = isinstance(error, StoreRefused | TranscriptDamaged) and not given.without_message
    if given.status == "error" and not tried_again:
        stored = given.stage not in ("parse", "persist")
        thread_id = given.turn.thread_id if given.turn else None
        _tell_failure(given, given.error, thread_id=thread_id, messages_persisted=stored)


def _outcome(ended: Ended, given: FinishInput) -> TurnOutcome:
    answer = ended.message.text if ended.message else ""
    text = (
        cut(answer, RESULT_BYTES) if given.whole_text and given.previews else preview(answer, previews=given.previews)
    )
    return TurnOutcome(
        request_id=ended.request_id,
        thread_id=ended.thread_id,
        status=ended.status,
        stop_reason=ended.stop_reason,
        message_id=ended.message.id if ended.message else None,
        text=text,
        usage=ended.usage,
        steps=ended.steps,
        error=ended.error,
        next_request_id=ended.next_request_id,
        output=ended.output if given.previews and small_enough(ended.output) else None,
        superseded_by=ended.superseded_by,
        joined=ended.joined,
    )
