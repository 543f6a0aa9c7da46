"""Starts, serves and ends the process in which one turn code runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from everturn.hooks.contexts import HookContext
from everturn.hooks.log import MAX_LINES
from everturn.turns import JsonDict

CHILD: Final = str(Path(__file__).with_name("child.py"))
NEEDED_BY_PYTHON: Final = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that a run gets of the worker's environment: where a Python finds its own libraries."""
SLACK_BYTES: Final = 1024 * 1024
"""How much longer than its request one message of a run may be; a legal answer with all its escapes fits."""
MAX_TOTAL_BYTES: Final = 16 * 1024 * 1024
"""How much all messages of a run may have beyond that."""
END_PATIENCE: Final = 5.0
"""Seconds until the system has taken a killed process away."""


@dataclass(frozen=True, slots=True)
class CodeJob:
    """One run. seconds: after which the process ends by itself, should the worker be gone. memory: bytes."""

    source: str
    data: JsonDict
    runtime: JsonDict
    seconds: float
    memory: int

    def as_line(self) -> bytes:
        limits = {"seconds": self.seconds, "memory": self.memory, "log_lines": MAX_LINES}
        request = {"source": self.source, "data": self.data, "runtime": self.runtime, "limits": limits}
        return json.dumps(request).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class CodeEnd:
    """How a run ended. answer: what the function returned; edits: the fields of `data` that it changed in place.
    words: what went wrong. functions: what a skipped code declares."""

    outcome: Literal["result", "skipped", "invalid", "error", "oversize"]
    answer: Any = None
    edits: JsonDict = field(default_factory=dict[str, Any])
    words: str = ""
    functions: list[str] = field(default_factory=list[str])


async def run_code(job: CodeJob, ctx: HookContext, fetch: Callable[[object], Awaitable[JsonDict]]) -> CodeEnd:
    """Runs the code to its end, its log lines going to `ctx`; the caller sets the deadline by cancelling.

    fetch: serves the code's HTTP requests. Whatever happens, no process stays.
    """
    request = job.as_line()
    async with _process(len(request) + SLACK_BYTES) as pipes:
        sending = asyncio.ensure_future(_send(pipes.requests, request))
        try:
            return await _converse(pipes, len(request), ctx, fetch)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Pipes:
    process: asyncio.subprocess.Process
    requests: asyncio.StreamWriter
    answers: asyncio.StreamReader


@asynccontextmanager
async def _process(max_message: int) -> AsyncGenerator[_Pipes]:
    """A process in a session of its own, so that what it starts can be killed with it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-B", "-X", "utf8", CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in NEEDED_BY_PYTHON if name in os.environ},
        cwd=os.sep,
        start_new_session=True,
        limit=max_message,
    )
    pipes = _Pipes(process, cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout))
    try:
        yield pipes
    finally:
        _kill(process)
        pipes.requests.close()
        async with asyncio.timeout(END_PATIENCE):
            await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


async def _send(pipe: asyncio.StreamWriter, line: bytes) -> None:
    pipe.write(line)
    with contextlib.suppress(ConnectionError):  # it ended without reading; how, the conversation finds out
        await pipe.drain()


async def _converse(
    pipes: _Pipes, asked: int, ctx: HookContext, fetch: Callable[[object], Awaitable[JsonDict]]
) -> CodeEnd:
    room = asked + MAX_TOTAL_BYTES
    while True:
        try:
            line = await pipes.answers.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            return CodeEnd("oversize", words=f"sent more than {asked + SLACK_BYTES:,} bytes at once")
        except asyncio.IncompleteReadError:
            return CodeEnd("error", words=await _why_it_ended(pipes.process))
        room -= len(line)
        if room < 0:
            return CodeEnd("oversize", words=f"sent more than {asked + MAX_TOTAL_BYTES:,} bytes in all")
        message = _parsed(line)
        if "log" in message:
            _note(ctx, message["log"])
        elif "fetch" in message:
            reply = await fetch(message["fetch"])
            await _send(pipes.requests, json.dumps(reply).encode() + b"\n")
        else:
            return _end(message, ctx)


def _parsed(line: bytes) -> JsonDict:
    try:
        message: object = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    return cast(JsonDict, message) if isinstance(message, dict) else {"invalid": "answered with something unreadable"}


def _note(ctx: HookContext, given: object) -> None:
    line: JsonDict = cast(JsonDict, given) if isinstance(given, dict) else {"message": given}
    ctx.log(line.get("message"), line.get("data"), line.get("level", "info"))


def _end(message: JsonDict, ctx: HookContext) -> CodeEnd:
    dropped = message.get("dropped")
    ctx.log_dropped(dropped if isinstance(dropped, int) else 0)
    if isinstance(message.get("skipped"), list):
        return CodeEnd("skipped", functions=[str(name) for name in message["skipped"]])
    for outcome in ("invalid", "error"):
        if outcome in message:
            return CodeEnd(cast(Any, outcome), words=str(message[outcome]))
    result = message.get("result")
    if not isinstance(result, dict) or not isinstance(result.get("edits"), dict):
        return CodeEnd("invalid", words="answered with something unreadable")
    return CodeEnd("result", result.get("answer"), cast(JsonDict, result["edits"]))


async def _why_it_ended(process: asyncio.subprocess.Process) -> str:
    async with asyncio.timeout(END_PATIENCE):
        code = await process.wait()
    if code < 0:
        return f"its process was ended by signal {signal.Signals(-code).name} before it answered"
    return f"its process ended itself with exit code {code} before it answered"
