"""Signals: Ctrl-C while a turn is shown, and the orderly end of commands that run until they are told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeVar

from everturn.worker.cli.racing import unless

Result = TypeVar("Result")


class Left(Exception):
    """The user pressed Ctrl-C a second time; the turn goes on without a viewer."""


async def with_two_presses(work: Coroutine[Any, Any, Result], first: Callable[[], Awaitable[None]]) -> Result:
    """The result of `work`; the first Ctrl-C meanwhile runs `first`, the second one ends the wait.

    Raises Left after the second press, and whatever `work` or `first` raises.
    """
    presses = asyncio.Queue[None]()

    async def listen() -> NoReturn:
        await presses.get()
        await first()
        await presses.get()
        raise Left

    with _handled((signal.SIGINT,), lambda: presses.put_nowait(None)):
        return await unless(listen(), work)


@asynccontextmanager
async def stop_requested() -> AsyncGenerator[asyncio.Event]:
    """An event that SIGINT or SIGTERM sets."""
    event = asyncio.Event()
    with _handled((signal.SIGINT, signal.SIGTERM), event.set):
        yield event


@contextmanager
def _handled(signals: tuple[signal.Signals, ...], action: Callable[[], object]) -> Generator[None]:
    """Runs `action` in the event loop for each of these signals, instead of what they did before."""
    loop = asyncio.get_running_loop()

    def handle(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(action)

    previous = {number: signal.signal(number, handle) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
