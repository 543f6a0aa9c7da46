"""Shows a running turn to its end; Ctrl-C stops the turn first and leaves it second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everturn import chunks
from everturn.worker.cli.interrupts import Left, with_two_presses
from everturn.worker.cli.running import DONE, INTERRUPTED, TURN_FAILED
from everturn.worker.cli.screen import Screen
from everturn.worker.cli.viewers import Viewer, view

if TYPE_CHECKING:
    from everturn.client.chat import ChatClient


async def follow(chat: ChatClient, request_id: str, viewer: Viewer) -> int:
    """Shows the turn until it ends, and returns the exit code that its ending means."""

    async def stop() -> None:
        viewer.note("stopping the turn; press Ctrl-C again to leave it")
        await chat.cancel_chat(request_id, reason="user pressed stop")

    try:
        screen = await with_two_presses(view(chat.turn(request_id).stream(), viewer), first=stop)
    except Left:
        viewer.note(f"left; to see how it ends: everturn stream {request_id}")
        return INTERRUPTED
    _tell_the_end(screen, viewer)
    return exit_code_of(screen.end)


def exit_code_of(end: str | None) -> int:
    """What the chunk that ended a stream means to a shell."""
    return DONE if end == chunks.FINISH else TURN_FAILED


def _tell_the_end(screen: Screen, viewer: Viewer) -> None:
    if screen.end == chunks.ABORT:
        viewer.note(f"stopped: {screen.error}")
    elif screen.end == chunks.ERROR:
        viewer.note(f"the turn failed: {screen.error}")
