"""A chat in the terminal."""

from __future__ import annotations

import asyncio
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

from everturn.errors import EverturnError
from everturn.turns import TERMINAL
from everturn.worker.cli.calls import connected
from everturn.worker.cli.following import follow
from everturn.worker.cli.options import Places
from everturn.worker.cli.running import DONE, INTERRUPTED, complain
from everturn.worker.cli.tables import messages_text
from everturn.worker.cli.viewers import harmless, make_viewer

if TYPE_CHECKING:
    from everturn.client.chat import ChatClient

COMMANDS: Final = {
    "/stop": "stop the turns of this thread that run or wait",
    "/history": "show the thread",
    "/help": "show these commands",
    "/quit": "leave (as Ctrl-D does)",
}
HELP: Final = "\n".join(f"{name:<9} {what}" for name, what in COMMANDS.items())
TURNS_TO_STOP = 50


class Chat:
    """Reads lines, sends them as turns of one thread, shows the answers."""

    def __init__(self, client: ChatClient, thread_id: str, agent: str) -> None:
        self._client, self._thread_id, self._agent = client, thread_id, agent

    async def run(self) -> int:
        """Returns the exit code when the user leaves. A failed turn or a refused message does not end the chat."""
        if sys.stdin.isatty():
            sys.stdout.write(f"thread {self._thread_id}, agent {self._agent}; /help for help, Ctrl-D to leave\n")
        while (line := read_line()) is not None:
            words = line.strip()
            if words == "/quit":
                break
            try:
                code = await self._answer(words)
            except EverturnError as error:
                if error.exit_code != 1 and not sys.stdin.isatty():
                    raise
                complain(str(error))
                continue
            if code == INTERRUPTED:
                return code
        return DONE

    async def _answer(self, words: str) -> int:
        if not words:
            return DONE
        if words.startswith("/"):
            await self._command(words)
            return DONE
        turn = await self._client.submit(self._thread_id, words, agent=self._agent)
        return await follow(self._client, turn.request_id, make_viewer())

    async def _command(self, words: str) -> None:
        match words:
            case "/stop":
                await self._stop()
            case "/history":
                history = messages_text(await self._client.messages(self._thread_id))
                sys.stdout.write(harmless(history or "(nothing yet)") + "\n")
            case _:
                unknown = "" if words == "/help" else f"there is no command {words.split(maxsplit=1)[0]}\n"
                sys.stdout.write(f"{unknown}{HELP}\n")

    async def _stop(self) -> None:
        turns = await self._client.list_turns(thread_id=self._thread_id, limit=TURNS_TO_STOP)
        running = [turn for turn in turns if turn.status not in TERMINAL]
        for turn in running:
            outcome = await self._client.cancel_chat(turn.request_id, reason="user pressed stop")
            sys.stdout.write(f"turn {turn.request_id}: {outcome.replace('_', ' ')}\n")
        if not running:
            sys.stdout.write("no turn of this thread is running\n")


def read_line() -> str | None:
    """The next line of the user, None when there are no more. Ctrl-C throws the line away, on an empty one it leaves.

    It holds up the event loop, on purpose: nothing of ours runs while the user types, and only the main thread can be
    interrupted. Raises CancelledError on SIGTERM, as everything else of a command does.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline() or None
    import readline  # line editing and history for input()

    previous = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, _leave),
    }
    try:
        return input("\n> ")
    except EOFError:
        return None
    except KeyboardInterrupt:
        sys.stdout.write("\n")
        return "" if readline.get_line_buffer() else None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    raise asyncio.CancelledError


async def chat(thread_id: str, agent: str, places: Places) -> int:
    """A chat with a running system."""
    async with connected(places) as client:
        return await Chat(client, thread_id, agent).run()
