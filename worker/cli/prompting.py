"""Reads what a person types."""

from __future__ import annotations

import asyncio
import signal
import sys
from types import FrameType
from typing import NoReturn


def read_line() -> str | None:
    """The next line of the user, None when there are no more. Ctrl-C throws the line away, on an empty one it leaves.

    It holds up the event loop, on purpose: nothing of ours runs while the user types, and only the main thread can be
    interrupted. Raises CancelledError on SIGTERM, as everything else of a command does.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline() or None
    import readline  # line editing and history for input()

    previous = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, _leave),
    }
    try:
        return input("\n> ")
    except EOFError:
        return None
    except KeyboardInterrupt:
        sys.stdout.write("\n")
        return "" if readline.get_line_buffer() else None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    raise asyncio.CancelledError
