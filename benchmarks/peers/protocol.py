"""How a contender's client process is talked to: a request a line on standard input, an answer a line back."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.script import TOKEN, Script

_LINE_LIMIT = 1 << 24
TEMPORAL = os.environ.get("BENCH_TEMPORAL", "")
MODEL_URL = os.environ.get("BENCH_MODEL_URL", "")
FOLDER = os.environ.get("BENCH_FOLDER", "")
NAME = os.environ.get("BENCH_NAME", "")
"""The contender's name, and the task queue of its worker."""
SYSTEM = "You are a helpful assistant. Use the lookup tool when you are asked to."
LOOKUP: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Looks something up.",
        "parameters": {
            "type": "object",
            "properties": {"turn": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["turn", "n"],
        },
    },
}
"""The one tool of every contender."""


class Tap:
    """What a viewer of a turn's stream sees."""

    def __init__(self) -> None:
        self.tokens: list[tuple[int, float]] = []
        """Number of the token and when it came, seconds since the epoch."""
        self._rest = ""

    def text(self, piece: str) -> None:
        now = time.time()
        self._rest += piece
        end = 0
        for found in TOKEN.finditer(self._rest):
            self.tokens.append((int(found.group(1)), now))
            end = found.end()
        self._rest = self._rest[end:]

    def reset(self) -> None:
        """What was shown is void, and the viewer has been told so."""
        self.tokens.clear()
        self._rest = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A turn to run. earlier: exchanges that the thread has before it. tap: takes the text as it comes."""

    script: Script
    earlier: int
    tap: Tap = field(default_factory=Tap)

    @property
    def turn(self) -> str:
        return self.script.turn

    @property
    def message(self) -> str:
        return self.script.message


@dataclass(frozen=True, slots=True)
class Answer:
    """The text at the end. workflow: id of the Temporal workflow, None without one. accepted: when the submission
    had returned, seconds since the epoch, where that can be told."""

    text: str
    workflow: str | None = None
    accepted: float | None = None


TurnFunction = Callable[[Call], Awaitable[Answer]]


async def serve(run_turn: TurnFunction) -> None:
    """Answers requests until standard input ends. What libraries print goes to the log."""
    loop = asyncio.get_running_loop()
    requests = asyncio.StreamReader(limit=_LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    say({"ready": NAME})
    while line := await requests.readline():
        request = json.loads(line)
        scripts = [Script(_turn_id(), **request["script"]) for _ in range(request["count"])]
        say({"turns": [script.turn for script in scripts]})
        began = time.perf_counter()
        gate = asyncio.Semaphore(request["at_once"])
        done = await asyncio.gather(*(_one(run_turn, script, request, gate) for script in scripts))
        say({"seconds": time.perf_counter() - began, "turns": done})


async def _one(
    run_turn: TurnFunction, script: Script, request: dict[str, Any], gate: asyncio.Semaphore
) -> dict[str, Any]:
    async with gate:
        call = Call(script, request["earlier"])
        told: dict[str, Any] = {"turn": script.turn, "began": time.time()}
        try:
            answer = await asyncio.wait_for(run_turn(call), request["limit"])
        except Exception as error:  # a failed turn is a finding of the comparison, not the end of it
            return told | {"ended": time.time(), "error": f"{type(error).__name__}: {error}"[:500]}
        told |= {"ended": time.time(), "workflow": answer.workflow, "accepted": answer.accepted}
        if answer.text != "".join(script.words):
            told["error"] = f"the text was {answer.text[:200]!r}"
    return told | {"tokens": call.tap.tokens}


def _turn_id() -> str:
    return f"{NAME}-{uuid.uuid4().hex[:12]}"
