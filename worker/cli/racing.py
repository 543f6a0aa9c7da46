"""Two things at once, of which one only ends in trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

Result = TypeVar("Result")


async def unless(breaker: Coroutine[Any, Any, NoReturn], work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`, unless `breaker` raises first; whichever is late is cancelled."""
    breaking, working = asyncio.ensure_future(breaker), asyncio.ensure_future(work)
    try:
        await asyncio.wait((breaking, working), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            breaking.result()
        return working.result()
    finally:
        breaking.cancel()
        working.cancel()
        await asyncio.gather(breaking, working, return_exceptions=True)
