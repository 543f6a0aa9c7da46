"""Shows a running turn to its end; Ctrl-C stops the turn first and leaves it second."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from everturn import chunks
from everturn.chunks import Chunk
from everturn.worker.cli.interrupts import Left, with_two_presses
from everturn.worker.cli.running import DONE, INTERRUPTED, TURN_FAILED
from everturn.worker.cli.screen import Screen
from everturn.worker.cli.viewers import Viewer

if TYPE_CHECKING:
    from everturn.client.chat import ChatClient


class Follower:
    """One turn on one viewer.

    pauses: `run` comes back when a tool call asks for approval, so that somebody can be asked; run it again after
    the answer.
    """

    def __init__(self, chat: ChatClient, request_id: str, viewer: Viewer, *, pauses: bool = False) -> None:
        self.request_id = request_id
        self._chat, self._viewer, self._pauses = chat, viewer, pauses
        self._screen = Screen()
        self._seen = 0

    async def run(self) -> int | None:
        """Shows the turn until it ends and returns the exit code that its ending means; None for a pause."""
        try:
            ended = await with_two_presses(self._show(), first=self._stop)
        except Left:
            self._viewer.note(f"left; to see how it ends: everturn stream {self.request_id}")
            return INTERRUPTED
        if not ended:
            return None
        self._tell_the_end()
        return exit_code_of(self._screen.end)

    async def _show(self) -> bool:
        """True at the turn's end, False at a pause."""
        stream = self._chat.turn(self.request_id).stream(after=self._seen)
        with self._viewer:
            async with aclosing(cast(AsyncGenerator[Chunk], stream)) as given:
                async for chunk in given:
                    self._seen = chunk.seq
                    self._screen = self._screen.advance(chunk)
                    self._viewer.show(chunk)
                    if self._pauses and chunk.type == chunks.TOOL_APPROVAL_REQUEST:
                        return False
        return True

    async def _stop(self) -> None:
        self._viewer.note("stopping the turn; press Ctrl-C again to leave it")
        await self._chat.cancel_chat(self.request_id, reason="user pressed stop")

    def _tell_the_end(self) -> None:
        if self._screen.end == chunks.ABORT:
            self._viewer.note(f"stopped: {self._screen.error}")
        elif self._screen.end == chunks.ERROR:
            self._viewer.note(f"the turn failed: {self._screen.error}")


async def follow(chat: ChatClient, request_id: str, viewer: Viewer) -> int:
    """Shows the turn until it ends, without pauses, and returns the exit code that its ending means."""
    code = await Follower(chat, request_id, viewer).run()
    return DONE if code is None else code


def exit_code_of(end: str | None) -> int:
    """What the chunk that ended a stream means to a shell."""
    return DONE if end == chunks.FINISH else TURN_FAILED
