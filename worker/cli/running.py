"""Runs a command to its exit code: one clear line for each error, a traceback only when asked for."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import typer

DONE, TURN_FAILED, BAD_USAGE, UNREACHABLE = 0, 1, 2, 3
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def run(command: Callable[[], Coroutine[Any, Any, int]], debug: bool) -> None:
    """Runs `command` in an event loop and ends the command line with the exit code that it returns."""
    from everturn.errors import EverturnError

    try:
        code = asyncio.run(command())
    except EverturnError as error:
        code = error.exit_code
        complain(str(error), error if debug else None)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left: nothing more to say
        code = DONE
    except Exception as error:  # a bug of ours must be one line, too
        code = TURN_FAILED
        complain(f"unexpected {type(error).__name__}: {error}; --debug shows where", error if debug else None)
    raise typer.Exit(code)


def complain(message: str, error: BaseException | None = None) -> None:
    """One line on standard error, after the traceback of `error` if there is one."""
    if error is not None:
        traceback.print_exception(error)
    sys.stderr.write(f"everturn: {message}\n")
