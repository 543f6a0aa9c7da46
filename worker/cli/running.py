"""Runs a command to its exit code: one clear line for each error, a traceback only when asked for.

asyncio is imported when a command runs: it takes as long as all of our own modules that `--help` needs.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

import typer

DONE, TURN_FAILED, BAD_USAGE, UNREACHABLE = 0, 1, 2, 3
INTERRUPTED, TERMINATED = 130, 143  # 128 + the signal's number, as shells report it


def run(command: Callable[[], Coroutine[Any, Any, int]], debug: bool) -> None:
    """Runs `command` in an event loop and ends the command line with the exit code that it returns."""
    import asyncio

    raise typer.Exit(outcome(lambda: asyncio.run(_until_terminated(command)), debug))


def run_worker_command(command: Callable[[], Coroutine[Any, Any, int]], debug: bool) -> None:
    """The same in the loop that worker processes have."""
    from everturn.worker.event_loop import run_in_loop

    raise typer.Exit(outcome(lambda: run_in_loop(_until_terminated(command)), debug))


def run_without_loop(command: Callable[[], int], debug: bool) -> None:
    """The same for a command that starts processes, which must not be forked from within an event loop."""
    raise typer.Exit(outcome(command, debug))


def outcome(command: Callable[[], int], debug: bool) -> int:
    """The exit code of a command, also of one that failed: then it has said so in one line."""
    from asyncio import CancelledError

    from everturn.errors import EverturnError

    try:
        return command()
    except EverturnError as error:
        code = error.exit_code
        complain(str(error), error if debug else None)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except CancelledError:
        code = TERMINATED
    except BrokenPipeError:  # the reader of our output has left: nothing more to say
        code = DONE
    except Exception as error:  # a bug of ours must be one line, too
        code = complain_of_a_bug(error, debug)
    return code


def complain(message: str, error: BaseException | None = None) -> None:
    """One line on standard error, after the traceback of `error` if there is one."""
    if error is not None:
        traceback.print_exception(error)
    sys.stderr.write(f"everturn: {message}\n")


def complain_of_a_bug(error: Exception, debug: bool) -> int:
    """One line about an error that nobody foresaw, and its exit code."""
    complain(f"unexpected {type(error).__name__}: {error}; --debug shows where", error if debug else None)
    return TURN_FAILED


async def _until_terminated(command: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """SIGTERM cancels the command, so that it stops its processes and removes its files; some handle it themselves."""
    import asyncio

    loop = asyncio.get_running_loop()
    working = loop.create_task(command())

    def terminate(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(working.cancel)

    signal.signal(signal.SIGTERM, terminate)
    return await working
