"""A handle on one turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from everturn.chunks import Chunk
from everturn.ids import workflow_id
from everturn.turns import CancelOutcome, TurnInfo, TurnResult

if TYPE_CHECKING:
    from everturn.client.chat import ChatClient


class Turn:
    """One turn, running or over. Made by `ChatClient.submit` and `ChatClient.turn`.

    accepted: this call started the turn; False if its request_id was known already. thread_id: "" if the handle was
    made from the request_id alone.
    """

    def __init__(self, chat: ChatClient, request_id: str, thread_id: str = "", *, accepted: bool = False) -> None:
        self._chat = chat
        self.request_id = request_id
        self.thread_id = thread_id
        self.accepted = accepted

    def __repr__(self) -> str:
        return f"Turn(request_id={self.request_id!r}, thread_id={self.thread_id!r}, accepted={self.accepted})"

    @property
    def workflow_id(self) -> str:
        return workflow_id(self.request_id)

    @property
    def web_ui(self) -> str | None:
        """The turn's page in the Temporal Web UI, None if its address is not known."""
        return self._chat.link(self.request_id)

    def stream(self, after: int = 0) -> AsyncIterator[Chunk]:
        """The turn's chunks numbered above `after`: those stored, then those to come, up to and with the turn's end.

        Can be called any number of times, from any process, also after the turn. Closing the iterator is not a cancel.
        Raises StoreRequired, TurnNotFound or StoreUnavailable.
        """
        return self._chat.stream(self.request_id, after=after)

    async def result(self, timeout: float | None = None) -> TurnResult:  # noqa: ASYNC109 - part of the contract
        """Waits for the end of the turn. timeout: seconds; then ResultTimeout, and the turn goes on."""
        return await self._chat.result(self.request_id, timeout=timeout)

    async def cancel(self, reason: str | None = None) -> CancelOutcome:
        """Stops the turn: see `ChatClient.cancel_chat`."""
        return await self._chat.cancel_chat(self.request_id, reason)

    async def info(self) -> TurnInfo:
        """Everything that is known of the turn: see `ChatClient.inspect`."""
        return await self._chat.inspect(self.request_id)
