"""Worker processes for many systems at once: forked from one parent that has imported everything, so each starts in
milliseconds instead of seconds of CPU."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import select
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.worker._worker import load_default_build_id  # nowhere public

from everturn import Model
from everturn.activities.models.lanes import ModelLanes

START_LIMIT = 60.0
END_LIMIT = 45.0


@dataclass
class WorkerProcess:
    """One forked worker. ended: its exit code, negative for a signal."""

    pid: int
    log: Path
    ended: asyncio.Future[int]

    def kill(self) -> None:
        """As a crash would: no cleanup."""
        self._send(signal.SIGKILL)

    def pause(self) -> None:
        """Stops the process in its tracks, as a long garbage collection or a suspended machine would."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def terminate(self) -> None:
        """Asks for an orderly stop."""
        self._send(signal.SIGTERM)

    async def wait(self, limit: float = END_LIMIT) -> int:
        async with asyncio.timeout(limit):
            return await asyncio.shield(self.ended)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if not self.ended.done():
                os.kill(self.pid, number)


class Nursery:
    """The parent process of the workers, seen from the tests."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._starting: asyncio.Queue[asyncio.Future[int]] = asyncio.Queue()
        self._living: dict[int, asyncio.Future[int]] = {}
        self._lock = asyncio.Lock()
        self._reader = asyncio.ensure_future(self._read())

    async def start(self, environment: dict[str, str], log: Path) -> WorkerProcess:
        """Forks a worker; it polls a moment later."""
        assert self._process.stdin is not None
        log.touch()
        pid: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        async with self._lock:
            self._starting.put_nowait(pid)
            self._process.stdin.write(json.dumps({"environment": environment, "log": str(log)}).encode() + b"\n")
            await self._process.stdin.drain()
        async with asyncio.timeout(START_LIMIT):
            number = await pid
        return WorkerProcess(number, log, self._living[number])

    async def close(self) -> None:
        """Ends the parent, and with it every worker that is left."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(END_LIMIT):
            await self._process.wait()
            await self._reader

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            told = json.loads(line)
            if "started" in told:
                self._living[told["started"]] = asyncio.get_running_loop().create_future()
                self._starting.get_nowait().set_result(told["started"])
            else:
                self._living.pop(told["ended"]).set_result(told["code"])


@asynccontextmanager
async def open_nursery() -> AsyncIterator[Nursery]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    nursery = Nursery(process)
    try:
        yield nursery
    finally:
        await nursery.close()


def _tell(**facts: object) -> None:
    os.write(1, json.dumps(facts).encode() + b"\n")


class _Parent:
    """The parent process itself: forks for each line of its input, reports each end, dies with its input."""

    def __init__(self) -> None:
        self._children: set[int] = set()

    def serve(self) -> None:
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to be woken
        orders = b""
        while True:
            ready, _, _ = select.select([0, woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
                self._reap()
            if 0 in ready:
                told = os.read(0, 65536)
                if not told:
                    break
                *lines, orders = (orders + told).split(b"\n")
                for line in lines:
                    self._fork(**json.loads(line))
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _fork(self, environment: dict[str, str], log: str) -> None:
        pid = os.fork()
        if pid == 0:
            self._become_worker(environment, log)
        self._children.add(pid)
        _tell(started=pid)

    def _reap(self) -> None:
        for pid in list(self._children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._children.discard(pid)
                _tell(ended=pid, code=os.waitstatus_to_exitcode(status))

    def _become_worker(self, environment: dict[str, str], log: str) -> None:
        """Does not return."""
        from tests.chaos.worker import work

        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        code = 1
        try:
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ.update(environment)
            asyncio.run(work())
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        finally:
            os._exit(code)  # as the product's commands do: native threads can crash an interpreter that finalizes


async def _warm_up() -> None:
    """Does once what every worker would do at its start."""
    lanes = ModelLanes()
    await lanes.warm_up([Model("openai/scripted", api_base="http://127.0.0.1:9/v1")])
    await lanes.close()


def _main() -> None:
    import tests.chaos.worker  # noqa: F401 - what the forks share

    asyncio.run(_warm_up())
    load_default_build_id()  # the SDK hashes every imported module, half a second of CPU, and remembers it
    gc.freeze()
    _Parent().serve()


if __name__ == "__main__":
    _main()
