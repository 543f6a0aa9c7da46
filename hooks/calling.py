"""Calls an author's function, `def` or `async def`, from the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any


async def invoke(function: Callable[..., Any], executor: Executor, /, *args: Any, **kwargs: Any) -> Any:
    """A plain `def` runs in a thread of `executor`, with the caller's context variables.

    Raises what the function raises; but SystemExit, which would stop the worker's event loop, and StopIteration, which
    would never reach it, arrive as RuntimeError.
    """
    try:
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(executor, lambda: context.run(_contained, function, args, kwargs))
        return await result if inspect.isawaitable(result) else result
    except SystemExit as error:
        raise RuntimeError(f"tried to end the process: sys.exit({error.code!r})") from error


def _contained(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except StopIteration as error:
        raise RuntimeError("raised StopIteration") from error
