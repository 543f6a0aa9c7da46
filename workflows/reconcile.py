"""Looks for turns that nothing executes any more; a Temporal schedule starts it again and again."""

from __future__ import annotations

from dataclasses import replace

from temporalio import workflow
from temporalio.common import VersioningBehavior

from everturn.activities.payloads import activity_name
from everturn.activities.recovery_payloads import (
    RECONCILE_WORKFLOW,
    Page,
    PageDone,
    ReconcileDone,
    ReconcileInput,
)
from everturn.workflows import timeouts
from everturn.workflows.failures import BUGS


@workflow.defn(name=RECONCILE_WORKFLOW, sandboxed=False, failure_exception_types=BUGS)
class ReconcileWorkflow:
    """One look at the whole store, page by page.

    1. `reconcile` finds the unfinished turns whose workflow is gone and starts the settling of each.
    2. `sweep_drafts` deletes messages whose turn was never started.

    It changes no turn by itself: a run that is repeated, cut off, or has company does no harm.
    """

    @workflow.run
    async def run(self, given: ReconcileInput) -> ReconcileDone:
        """What this run found; a look that went on as new counts from there."""
        return await _look(given)


@workflow.defn(
    name=RECONCILE_WORKFLOW,
    sandboxed=False,
    failure_exception_types=BUGS,
    versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
)
class VersionedReconcileWorkflow:
    """The same for workers with a build id: the server takes a versioning behaviour from such workers only."""

    @workflow.run
    async def run(self, given: ReconcileInput) -> ReconcileDone:
        """See ReconcileWorkflow."""
        return await _look(given)


async def _look(given: ReconcileInput) -> ReconcileDone:
    done = ReconcileDone()
    after: str | None = given.after
    while after is not None:
        page = await _page("reconcile", Page(given.grace, after))
        done = replace(done, turns=done.turns + page.seen, lost=done.lost + page.gone)
        after = page.next
        if after is not None and workflow.info().is_continue_as_new_suggested():
            workflow.continue_as_new(replace(given, after=after))
    after = ""
    while after is not None:
        page = await _page("sweep_drafts", Page(given.draft_age, after))
        done = replace(done, drafts=done.drafts + page.gone)
        after = page.next
    return done


async def _page(name: str, page: Page) -> PageDone:
    done: PageDone = await workflow.execute_activity(
        activity_name(name),
        page,
        result_type=PageDone,
        start_to_close_timeout=timeouts.PAGE_START_TO_CLOSE,
        schedule_to_close_timeout=timeouts.PAGE_SCHEDULE_TO_CLOSE,
        heartbeat_timeout=timeouts.HEARTBEAT_TIMEOUT,
        retry_policy=timeouts.PAGE_RETRY,
    )
    return done
