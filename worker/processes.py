"""Several processes that do the same work: forked where that is safe, watched, replaced when they die.

Forked processes share the memory of what their parent has imported. Only a parent with one thread may fork: a lock that
another thread holds at that moment would stay locked in the child for ever.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, Protocol

from everturn.worker.exit import guarded_exit
from everturn.worker.launcher import die_with

log = logging.getLogger("everturn.worker")

FIRST_DELAY: Final = 1.0
"""Seconds until a process that died is replaced; each further death of its successors doubles it."""
LAST_DELAY: Final = 30.0
STEADY: Final = 60.0
"""A process that has run for so many seconds was no failed start: the delay begins anew."""
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Work(Protocol):
    """What each process does, numbered from 1, until SIGTERM; calls `ready` once it works. Returns its exit code."""

    def __call__(self, number: int, ready: Callable[[], None]) -> int: ...


@dataclass
class _Member:
    number: int
    process: BaseProcess
    news: Connection
    since: float
    ready: bool = False


class WorkerProcesses:
    """Runs `work` in `count` processes until SIGTERM or SIGINT.

    patience: seconds that a process has to stop. Where processes cannot be forked, `work` is pickled.
    """

    def __init__(self, count: int, work: Work, patience: float) -> None:
        self._count, self._work, self._patience = count, work, patience
        self._context = _context()
        self._members: dict[int, _Member] = {}
        self._due: dict[int, float] = {}
        self._delays: dict[int, float] = {}
        self._proven = False  # one was ready: what made it die later is no mistake of the command
        self._stopping = False

    def run(self) -> int:
        """Returns 0 when all have stopped in order after a signal, 1 if one failed in that or had to be killed.

        A process that ends before any was ready ends all: its exit code is returned.
        """
        gc.collect()
        gc.freeze()  # what is here now stays: no collection in a child shall touch, and so copy, its pages
        with self._signals() as woken:
            for number in range(1, self._count + 1):
                self._start(number)
            failed: int | None = None
            while not self._stopping and failed is None:
                failed = self._look(woken)
            stopped = self._stop()
        return stopped if failed is None else failed

    def _look(self, woken: Connection) -> int | None:
        """Waits for the next thing to happen; the exit code if it ends all."""
        wait([woken, *self._watched()], timeout=self._until_due())
        if woken.poll():
            os.read(woken.fileno(), 1024)
        for member in list(self._members.values()):
            if not member.ready and member.news.poll():
                self._note_ready(member)
            if member.process.exitcode is not None:
                if not self._proven:
                    return member.process.exitcode or 1
                self._replace_later(member)
        for number, due in list(self._due.items()):
            if due <= time.monotonic():
                del self._due[number]
                self._start(number)
        return None

    def _watched(self) -> list[Any]:
        sentinels = [member.process.sentinel for member in self._members.values()]
        return [*sentinels, *(member.news for member in self._members.values() if not member.ready)]

    def _until_due(self) -> float | None:
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None

    def _note_ready(self, member: _Member) -> None:
        try:
            member.news.recv_bytes()
        except EOFError:  # it died; its exit code tells
            return
        member.ready = self._proven = True

    def _replace_later(self, member: _Member) -> None:
        steady = time.monotonic() - member.since >= STEADY
        delay = FIRST_DELAY if steady else self._delays.get(member.number, FIRST_DELAY)
        self._delays[member.number] = min(delay * 2, LAST_DELAY)
        self._due[member.number] = time.monotonic() + delay
        self._forget(member)
        code = member.process.exitcode
        log.error("worker process %d (pid %d) ended with %d", member.number, member.process.pid, code)
        log.warning("a new worker process %d starts in %g s", member.number, delay)

    def _start(self, number: int) -> None:
        news, told = self._context.Pipe(duplex=False)
        arguments = (os.getpid(), number, self._work, told)
        # A signal between the fork and the child's own handlers must not run the parent's.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        try:
            process = self._context.Process(target=_child, args=arguments, name=f"everturn-worker-{number}")
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        told.close()
        self._members[number] = _Member(number, process, news, time.monotonic())

    def _stop(self) -> int:
        """Asks all to stop, waits, and kills who does not."""
        for member in self._members.values():
            if member.process.exitcode is None:
                member.process.terminate()
        ends = time.monotonic() + self._patience
        code = 0
        for member in list(self._members.values()):
            member.process.join(max(0.0, ends - time.monotonic()))
            if member.process.exitcode is None:
                log.warning("worker process %d did not stop within %g s and was killed", member.number, self._patience)
                member.process.kill()
                member.process.join()
            in_order = (0,) if member.ready else (0, -signal.SIGTERM)
            code = code if member.process.exitcode in in_order else 1
            self._forget(member)
        return code

    def _forget(self, member: _Member) -> None:
        del self._members[member.number]
        member.news.close()

    @contextmanager
    def _signals(self) -> Generator[Connection]:
        """A connection that can be read after a signal."""
        reader, writer = self._context.Pipe(duplex=False)
        os.set_blocking(writer.fileno(), False)
        wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._on_signal) for number in _STOP_SIGNALS}
        try:
            yield reader
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            reader.close()
            writer.close()

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._stopping = True


def _context() -> ForkContext | SpawnContext:
    """Forking where it is safe, on Linux with one thread; else spawning, which shares nothing."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads == 1:
        return multiprocessing.get_context("fork")
    log.warning(
        "worker processes share no memory: %d threads run already, started by a module at its import", threads - 1
    )
    return multiprocessing.get_context("spawn")


def _child(parent: int, number: int, work: Work, told: Connection) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent says when to stop
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    if sys.platform == "linux":
        die_with(parent, signal.SIGTERM)
    else:
        threading.Thread(target=_stop_with_parent, daemon=True).start()
    guarded_exit(work(number, lambda: told.send_bytes(b"ready")))


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
