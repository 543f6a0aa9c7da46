"""The shipped commands as processes: run to their end, kept running, or in a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from everturn.worker.ports import choose_port

EVERTURN = (sys.executable, "-m", "everturn.worker")
PATIENCE = 60.0
_OURS = re.compile(r"^(EVERTURN|TEMPORAL|OPENAI|ANTHROPIC)_")
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def clean_environment(given: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without settings that could change what a command does, and with `given`."""
    return {name: value for name, value in os.environ.items() if not _OURS.match(name)} | dict(given)


def free_ports() -> tuple[str, ...]:
    """Options of `everturn server`: two test processes that look for 7233 at one moment would both find it free."""
    return ("--port", str(choose_port(None, "Temporal")), "--ui-port", str(choose_port(None, "the Web UI")))


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command left behind."""

    code: int
    output: str
    errors: str

    def json(self) -> Any:
        return json.loads(self.output)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Runs commands of one environment in one folder."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    async def run(self, *arguments: str, words: str = "", patience: float = PATIENCE) -> Finished:
        """Runs a command to its end. words: its standard input."""
        process = await self._start(arguments, stdin=asyncio.subprocess.PIPE)
        try:
            output, errors = await asyncio.wait_for(process.communicate(words.encode()), patience)
        except TimeoutError:
            process.kill()
            output, errors = await process.communicate()
            raise AssertionError(f"{arguments} ran on: {output.decode()} {errors.decode()}") from None
        assert process.returncode is not None
        return Finished(process.returncode, output.decode(), errors.decode())

    async def start(self, *arguments: str) -> Running:
        """Starts a command that runs until it is told to stop."""
        return Running(await self._start(arguments, stdin=asyncio.subprocess.DEVNULL))

    async def in_terminal(self, *arguments: str) -> Terminal:
        """Starts a command that believes that a person sits before it."""
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(*EVERTURN, *arguments),
            cwd=self.folder,
            env=clean_environment({"TERM": "xterm", "COLUMNS": "100", "LINES": "30", **self.environment}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        return Terminal(process, ours)

    async def _start(self, arguments: Sequence[str], stdin: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(*EVERTURN, *arguments),
            cwd=self.folder,
            env=clean_environment(self.environment),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )


class Running:
    """A command that runs; ended when the block is left."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._lines: list[str] = []
        self._news = asyncio.Event()
        self._over = False
        self._readers = [
            asyncio.ensure_future(self._read(stream)) for stream in (process.stdout, process.stderr) if stream
        ]
        self._watcher = asyncio.ensure_future(self._watch())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def output(self) -> str:
        """Standard output and error so far."""
        return "".join(self._lines)

    async def says(self, pattern: str, patience: float = PATIENCE) -> re.Match[str]:
        """Waits until the output matches; fails as soon as that cannot happen any more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not (found := re.search(pattern, self.output)) and not self._over:
                    self._news.clear()
                    await self._news.wait()
                if found:
                    return found
        raise AssertionError(f"it never said {pattern!r}, but: {self.output}")

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal and waits for the end; the exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        return await self.ended()

    async def ended(self, patience: float = PATIENCE) -> int:
        try:
            code = await asyncio.wait_for(self.process.wait(), patience)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
            raise AssertionError(f"it did not end: {self.output}") from None
        await self._watcher
        return code

    async def _watch(self) -> None:
        """Notes the end of the process, after the last of its words."""
        await self.process.wait()
        await asyncio.gather(*self._readers)
        self._over = True
        self._news.set()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            self._lines.append(line.decode())
            self._news.set()


class Terminal(Running):
    """A command in a terminal: what it shows, without colours, and keys for it."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int) -> None:
        super().__init__(process)
        self._terminal = terminal
        asyncio.get_running_loop().add_reader(terminal, self._read_terminal)

    @property
    def output(self) -> str:
        """All that was ever shown, without colours and cursor moves; what was drawn over stands on lines of its own."""
        return re.sub(r"[\r\n]+", "\n", _STEERING.sub("", "".join(self._lines)))

    async def answers(self, words: str) -> None:
        """Types at the next prompt; keys that come before it can get lost while the terminal changes its mode."""
        await self.says(r"\n> \Z")
        os.write(self._terminal, words.encode())

    def presses_ctrl_c(self) -> None:
        """The signal that the terminal would send for the key."""
        self.process.send_signal(signal.SIGINT)

    async def ended(self, patience: float = PATIENCE) -> int:
        try:
            return await super().ended(patience)
        finally:
            if self._terminal >= 0:
                self._close()

    def _read_terminal(self) -> None:
        try:
            piece = os.read(self._terminal, 65536)
        except OSError:  # how Linux reports that the other end is closed
            piece = b""
        if not piece:
            self._close()
            return
        self._lines.append(piece.decode(errors="replace"))
        self._news.set()

    def _close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._terminal)
        os.close(self._terminal)
        self._terminal = -1
