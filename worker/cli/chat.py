"""A chat in the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from everturn.errors import EverturnError
from everturn.turns import TERMINAL, PendingCall
from everturn.worker.cli.calls import connected
from everturn.worker.cli.following import Follower
from everturn.worker.cli.options import Places
from everturn.worker.cli.prompting import read_line
from everturn.worker.cli.running import DONE, INTERRUPTED, complain
from everturn.worker.cli.tables import messages_text
from everturn.worker.cli.viewers import harmless, make_viewer, short

if TYPE_CHECKING:
    from everturn.client.chat import ChatClient

COMMANDS: Final = {
    "/approve": "let the tool call run that waits for approval",
    "/deny": "refuse it; what follows is the reason that the model is told",
    "/stop": "stop the turns of this thread that run or wait",
    "/history": "show the thread",
    "/help": "show these commands",
    "/quit": "leave (as Ctrl-D does)",
}
HELP: Final = "\n".join(f"{name:<9} {what}" for name, what in COMMANDS.items())
TURNS_TO_STOP = 50


class Chat:
    """Reads lines, sends them as turns of one thread, shows the answers, asks for approvals."""

    def __init__(self, client: ChatClient, thread_id: str, agent: str) -> None:
        self._client, self._thread_id, self._agent = client, thread_id, agent
        self._paused: Follower | None = None

    async def run(self) -> int:
        """Returns the exit code when the user leaves. A failed turn or a refused message does not end the chat."""
        if sys.stdin.isatty():
            _say(f"thread {self._thread_id}, agent {self._agent}; /help for help, Ctrl-D to leave")
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
            return await self._command(words)
        if self._paused is not None:
            complain("the turn before waits for approval: /approve or /deny it, or /stop it")
            return DONE
        turn = await self._client.submit(self._thread_id, words, agent=self._agent)
        return await self._follow(Follower(self._client, turn.request_id, make_viewer(), pauses=True))

    async def _command(self, words: str) -> int:
        command, _, rest = words.partition(" ")
        match command:
            case "/approve":
                return await self._decide(None)
            case "/deny":
                return await self._decide(rest.strip() or "the user said no")
            case "/stop":
                await self._stop()
            case "/history":
                _say(messages_text(await self._client.messages(self._thread_id)) or "(nothing yet)")
            case _:
                unknown = "" if command == "/help" else f"there is no command {command}\n"
                _say(f"{unknown}{HELP}")
        return DONE

    async def _follow(self, follower: Follower) -> int:
        code = await follower.run()
        self._paused = follower if code is None else None
        if code is None:
            self._ask(await self._approvals())
        return code or DONE

    async def _decide(self, refusal: str | None) -> int:
        """Answers the oldest call that waits for approval, then shows its turn until it ends or asks again."""
        waiting = await self._approvals()
        if not waiting:
            _say("nothing waits for approval in this thread")
            return DONE
        call, *others = waiting
        if refusal is None:
            outcome = await self._client.approve(call.request_id, call.tool_call_id)
        else:
            outcome = await self._client.deny(call.request_id, call.tool_call_id, refusal)
        if outcome != "accepted":
            _say(f"{call.tool_name}: {outcome.replace('_', ' ')}")
        if any(other.request_id == call.request_id for other in others):
            self._ask(others)
            return DONE
        if self._paused is None or self._paused.request_id != call.request_id:
            self._paused = Follower(self._client, call.request_id, make_viewer(), pauses=True)
        return await self._follow(self._paused)

    async def _approvals(self) -> list[PendingCall]:
        pending = await self._client.pending(self._thread_id)
        return [call for call in pending if call.kind == "approval"]

    def _ask(self, waiting: list[PendingCall]) -> None:
        for call in waiting:
            why = f" ({call.reason})" if call.reason else ""
            _say(f"approve {call.tool_name}({short(call.input)})?{why}")
        _say("/approve lets the first one run, /deny REASON refuses it")

    async def _stop(self) -> None:
        turns = await self._client.list_turns(thread_id=self._thread_id, limit=TURNS_TO_STOP)
        running = [turn for turn in turns if turn.status not in TERMINAL]
        for turn in running:
            outcome = await self._client.cancel_chat(turn.request_id, reason="user pressed stop")
            _say(f"turn {turn.request_id}: {outcome.replace('_', ' ')}")
        if not running:
            _say("no turn of this thread is running")
        self._paused = None


async def chat(thread_id: str, agent: str, places: Places) -> int:
    """A chat with a running system."""
    async with connected(places) as client:
        return await Chat(client, thread_id, agent).run()


def _say(text: str) -> None:
    sys.stdout.write(harmless(text) + "\n")
