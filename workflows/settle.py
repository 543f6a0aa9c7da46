"""Ends one turn that nothing executes any more, as a workflow of its own."""

from __future__ import annotations

from dataclasses import replace

from temporalio import workflow
from temporalio.common import VersioningBehavior
from temporalio.exceptions import FailureError

from everturn.activities.payloads import ErrorInput, FinishInput, activity_name
from everturn.activities.recovery_payloads import SETTLE_WORKFLOW, LostTurn, SettleInput
from everturn.turns import TurnError
from everturn.workflows import timeouts
from everturn.workflows.arrows import Arrows
from everturn.workflows.failing import is_refused
from everturn.workflows.failures import BUGS
from everturn.workflows.last_words import ask_to_show, tell_the_end

STAGE = "recovery"


@workflow.defn(name=SETTLE_WORKFLOW, sandboxed=False, failure_exception_types=BUGS)
class SettleWorkflow:
    """Ends one lost turn.

    1. `find_lost` looks at the workflow, then at the store: a turn that lives, or ended in its own way, is left alone.
    2. `on_chat_error` may say what is shown (stage `recovery`).
    3. `finish` closes the stream, frees the thread and wakes the next turn: it ends a turn once, whoever comes first.
    4. `on_chat_response`, `on_turn_end`: unless the turn's own workflow got that far.

    There is one at a time for a turn (its id is `settle-<request id>`), so two reconcilers do not ask hooks twice.
    """

    @workflow.run
    async def run(self, given: SettleInput) -> str:
        """The state in which the turn was found: see LostTurn."""
        return await _settle(given.request_id)


@workflow.defn(
    name=SETTLE_WORKFLOW,
    sandboxed=False,
    failure_exception_types=BUGS,
    versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
)
class VersionedSettleWorkflow:
    """The same for workers with a build id: the server takes a versioning behaviour from such workers only."""

    @workflow.run
    async def run(self, given: SettleInput) -> str:
        """See SettleWorkflow."""
        return await _settle(given.request_id)


async def _settle(request_id: str) -> str:
    arrows = Arrows()
    lost: LostTurn = await workflow.execute_local_activity(
        activity_name("find_lost"),
        request_id,
        result_type=LostTurn,
        start_to_close_timeout=timeouts.STORE_START_TO_CLOSE,
        schedule_to_close_timeout=timeouts.STORE_SCHEDULE_TO_CLOSE,
        retry_policy=timeouts.STORE_RETRY,
    )
    if lost.state == "lost":
        answered = await _finish(arrows, request_id, lost)
    elif lost.state == "settled":
        answered = lost.message_id is not None
    else:
        return lost.state
    await tell_the_end(arrows, request_id, lost.agent, lost.points, answered=answered)
    return lost.state


async def _finish(arrows: Arrows, request_id: str, lost: LostTurn) -> bool:
    """True if the turn has an answer, which is then a part of one."""
    error = lost.error or TurnError("internal", "the turn was found lost without a reason")
    names = lost.points.get("on_chat_error")
    if names:
        error = await ask_to_show(arrows, ErrorInput(request_id, lost.agent, names, STAGE, error))
    ending = FinishInput(request_id, "error", "error", error, previews=False, stage=STAGE)
    try:
        return (await arrows.finish(ending)).message_id is not None
    except FailureError as failure:
        if not is_refused(failure):
            raise
        workflow.logger.warning("lost turn %s is settled without its message", request_id, exc_info=failure)
    return (await arrows.finish(replace(ending, without_message=True))).message_id is not None
