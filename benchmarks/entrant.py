"""A contender that runs: its client process, and its worker process if it has one."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.contenders import EVERTURN_AGENT, Contender
from benchmarks.environments import python_of
from benchmarks.programs import Programs

START_LIMIT: Final = 60.0
TURN_LIMIT: Final = 120.0
WARM_TURNS: Final = 3


@dataclass
class Entrant:
    """variables: the environment of its processes."""

    contender: Contender
    programs: Programs
    variables: Mapping[str, str]
    name: str
    client: asyncio.subprocess.Process | None = None
    worker: asyncio.subprocess.Process | None = None
    announced: list[str] = field(default_factory=list[str])
    """Turns of the request that is under way."""

    async def start(self) -> None:
        """Starts both processes and waits until the client is ready. Raises RuntimeError with a log's last words."""
        await self.start_worker()
        await self.start_client()

    async def start_client(self) -> None:
        name = f"{self.name}-client"
        command = [*self._module, "client"]
        self.client = await self.programs.start(name, command, self.variables, talks=True)
        await self._read(START_LIMIT)

    async def start_worker(self) -> None:
        kind, name = self.contender.worker, f"{self.name}-worker"
        if kind == "none":
            return
        command = [*self._module, "worker"]
        if kind == "everturn":
            command = [sys.executable, "-m", "everturn.worker", "worker", str(EVERTURN_AGENT)]
            if self.contender.processes > 1:
                command += ["--processes", str(self.contender.processes)]
        self.worker = await self.programs.start(name, command, self.variables)

    async def warm_up(self) -> None:
        """Runs some turns; raises RuntimeError if one fails."""
        done = await self.turns(count=WARM_TURNS, tools=2, tokens=20)
        if problems := [turn["error"] for turn in done["turns"] if turn.get("error")]:
            raise RuntimeError(problems[0])

    @property
    def pids(self) -> dict[str, int]:
        named = {"client": self.client, "worker": self.worker}
        return {name: process.pid for name, process in named.items() if process is not None}

    def kill(self) -> None:
        """Kills the process that runs the turns, as a crash would."""
        process = self.worker or self.client
        if process is None:
            raise RuntimeError(f"{self.name} does not run")
        process.send_signal(signal.SIGKILL)

    async def turns(
        self,
        *,
        count: int = 1,
        at_once: int = 1,
        earlier: int = 0,
        limit: float = TURN_LIMIT,
        **script: int,
    ) -> dict[str, Any]:
        """Runs turns: {"seconds": …, "turns": [{"turn", "began", "ended", "workflow", "tokens", "error"}]}."""
        await self.begin(count=count, at_once=at_once, earlier=earlier, limit=limit, **script)
        return await self.finished(limit * count)

    async def begin(self, *, count: int, at_once: int, earlier: int, limit: float, **script: int) -> None:
        """Asks for turns and returns when the client has named them."""
        if self.client is None or self.client.stdin is None:
            raise RuntimeError(f"{self.name} does not run")
        request = {"count": count, "at_once": at_once, "earlier": earlier, "limit": limit, "script": script}
        self.client.stdin.write(json.dumps(request).encode() + b"\n")
        self.announced = (await self._read(START_LIMIT))["turns"]

    async def finished(self, limit: float) -> dict[str, Any]:
        """The outcome of what was begun."""
        return await self._read(limit)

    @property
    def _module(self) -> list[str]:
        return [python_of(self.contender.environment), "-m", "benchmarks.peers.run", self.contender.module]

    async def _read(self, limit: float) -> dict[str, Any]:
        assert self.client is not None and self.client.stdout is not None
        line = await asyncio.wait_for(self.client.stdout.readline(), limit)
        if not line:
            name = f"{self.name}-client"
            raise RuntimeError(f"{name} ended: {self.programs.last_words(name)}")
        answer: dict[str, Any] = json.loads(line)
        return answer
