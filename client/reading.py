"""The client's reading side: turns, transcripts, links."""

from __future__ import annotations

import dataclasses

from everturn.client.connected import Connected
from everturn.client.request import check_listing
from everturn.connection import turn_link
from everturn.errors import TurnNotFound
from everturn.ids import check_id, workflow_id
from everturn.messages import Message
from everturn.turns import PendingCall, TurnInfo, TurnSummary


class Reading(Connected):
    """Reads the store; no worker need be alive."""

    async def pending(self, thread_id: str) -> list[PendingCall]:
        """The tool calls of a thread that wait for an approval or a client tool's result. Raises StoreRequired."""
        return await self._need_store("pending").pending(check_id(thread_id, "thread_id"))

    async def inspect(self, request_id: str) -> TurnInfo:
        """Everything that is known of a turn: status, steps, tool calls, usage, hook traces, error, Web UI link.

        Raises StoreRequired or TurnNotFound (also for a turn that no worker has begun yet).
        """
        info = await self._need_store("inspect").inspect(check_id(request_id, "request_id"))
        if info is None:
            raise TurnNotFound(request_id)
        return dataclasses.replace(info, web_ui=self.link(request_id))

    async def list_turns(
        self, thread_id: str | None = None, status: str | None = None, limit: int = 50
    ) -> list[TurnSummary]:
        """Turns, newest first, at most 1,000. Raises StoreRequired, BadInput for a status that does not exist."""
        check_listing(thread_id, status, limit)
        return await self._need_store("list_turns").list_turns(thread_id, status, limit)

    async def messages(self, thread_id: str) -> list[Message]:
        """The thread's transcript in order, hidden messages included. Raises StoreRequired."""
        return await self._need_store("messages").messages(check_id(thread_id, "thread_id"))

    def link(self, request_id: str) -> str | None:
        """The turn's page in the Temporal Web UI, None if its address is not known."""
        return turn_link(self._web_ui, self._temporal.client.namespace, workflow_id(request_id))
