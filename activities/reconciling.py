"""The reconciler's activities: which turns have lost their workflow, and which messages their turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from temporalio import activity

from everturn.activities.payloads import activity_name
from everturn.activities.recovery_payloads import LostTurn, Page, PageDone
from everturn.activities.services import Activities
from everturn.activities.settling import LOST, start_settling
from everturn.activities.turn_workflows import NEVER_STARTED, Found, find_workflow, listed_as_running
from everturn.errors import UnknownAgent
from everturn.hooks.points import ON_CHAT_ERROR, ON_CHAT_RESPONSE, ON_TURN_END
from everturn.turns import TERMINAL, TurnError

PAGE_ROWS: Final = 100
"""Rows of one activity: one visibility query, and a look at each that it does not list."""


class ReconcileActivities(Activities):
    """reconcile, sweep_drafts and find_lost."""

    @activity.defn(name=activity_name("reconcile"))
    async def reconcile(self, page: Page) -> PageDone:
        """Starts the settling of those unfinished turns that nothing executes."""
        rows = await self._store.leftovers.unfinished(page.older_than, page.after, PAGE_ROWS)
        gone = await self._gone(rows)
        for request_id, found in gone.items():
            queue = found.task_queue if found else activity.info().task_queue
            await start_settling(activity.client(), request_id, queue)
        return _page_done(rows, len(gone))

    @activity.defn(name=activity_name("sweep_drafts"))
    async def sweep_drafts(self, page: Page) -> PageDone:
        """Deletes messages of turns that were never started: their client died in between."""
        rows = await self._store.leftovers.drafts(page.older_than, page.after, PAGE_ROWS)
        gone = await self._gone(rows)
        await self._store.leftovers.drop_drafts(list(gone), page.older_than)
        return _page_done(rows, len(gone))

    @activity.defn(name=activity_name("find_lost"))
    async def find_lost(self, request_id: str) -> LostTurn:
        """What is to be done for a turn. Temporal is asked first: a workflow that is gone can no longer end its turn
        between that look and the one into the store."""
        found = await find_workflow(activity.client(), request_id)
        info = await self._store.inspect(request_id)
        if info is None:
            return LostTurn("unknown")
        turn = info.turn
        if turn.status in TERMINAL and (turn.error is None or turn.error.type != LOST):
            return LostTurn("over")
        if found is not None and found.gone is None:
            return LostTurn("alive")
        told = {trace.point for trace in info.hook_traces}
        points = await self._points(request_id, turn.agent, told)
        if turn.status in TERMINAL:
            ended = await self._store.ended(request_id)
            message = ended.message if ended else None
            return LostTurn("settled", turn.agent, points=points, message_id=message.id if message else None)
        reason = found.gone if found else None
        return LostTurn("lost", turn.agent, TurnError(LOST, reason or NEVER_STARTED), points)

    async def _points(self, request_id: str, agent: str, told: set[str]) -> dict[str, list[str]]:
        """The turn's ending hooks that have not run yet; none where this worker does not know the agent."""
        try:
            self._services.agents.get(agent)
        except UnknownAgent as error:
            activity.logger.warning("the hooks of lost turn %s are not told: %s", request_id, error)
            return {}
        manifest = (await self._store.load_turn(request_id)).manifest
        wanted = (ON_CHAT_ERROR, ON_CHAT_RESPONSE, ON_TURN_END)
        return {point: manifest[point] for point in wanted if manifest.get(point) and point not in told}

    async def _gone(self, request_ids: Sequence[str]) -> dict[str, Found | None]:
        """Those of the turns that no workflow will finish, with what Temporal knows of them."""
        client = activity.client()
        running = await listed_as_running(client, request_ids)
        gone: dict[str, Found | None] = {}
        for request_id in request_ids:
            if request_id in running:
                continue
            found = await find_workflow(client, request_id)
            if found is None or found.gone:
                gone[request_id] = found
        return gone


def _page_done(rows: Sequence[str], gone: int) -> PageDone:
    return PageDone(len(rows), gone, rows[-1] if len(rows) == PAGE_ROWS else None)
