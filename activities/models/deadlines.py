"""Time limits of a model's stream that no server can talk its way around."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from everturn.activities.models.failures import ModelFailure
from everturn.activities.models.types import Delta

FIRST_TOKEN_SECONDS = 120.0
"""Reasoning models think in silence for a minute and more, busy servers queue; after this a retry is the better bet."""
IDLE_SECONDS = 60.0
"""A model that writes does so every second or so; a minute of nothing is a dead connection that nobody closed."""
TOTAL_SECONDS = 900.0
"""The longest answers (100k tokens at 150 a second) end within this; a stream that drips for ever does not."""
CLOSE_SECONDS = 5.0
"""Closing a connection is a matter of milliseconds; a transport that hangs there must not hold the step."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds; 0 switches a limit off. first_token: until the first content. idle: between two pieces of content.
    total: for the whole call. Keep-alive comments and empty deltas are no content."""

    first_token: float = FIRST_TOKEN_SECONDS
    idle: float = IDLE_SECONDS
    total: float = TOTAL_SECONDS


@dataclass(frozen=True, slots=True)
class _Limit:
    at: float
    code: str
    message: str


async def with_deadlines(source: AsyncGenerator[Delta, None], deadlines: Deadlines) -> AsyncGenerator[Delta, None]:
    """The deltas of `source`; closes it in every case.

    Raises ModelFailure (transient): `first_token_timeout`, `stalled` or `total_timeout`.
    """
    loop = asyncio.get_running_loop()
    total = _limit(loop.time(), deadlines.total, "total_timeout", "the model's answer took longer than {:g} s in all")
    progress = _limit(
        loop.time(), deadlines.first_token, "first_token_timeout", "the model gave no answer within {:g} s"
    )
    try:
        while True:
            delta = await _next(source, [limit for limit in (total, progress) if limit is not None])
            if delta is None:
                return
            if is_content(delta):
                progress = _limit(loop.time(), deadlines.idle, "stalled", "the model's stream stopped for {:g} s")
            yield delta
    finally:
        async with asyncio.timeout(CLOSE_SECONDS):
            await source.aclose()


def is_content(delta: Delta) -> bool:
    """Whether a delta moves the answer forward."""
    if delta.text or delta.reasoning or delta.refusal or delta.thinking or delta.finish or delta.usage:
        return True
    return any(call.id or call.name or call.arguments for call in delta.calls)


def _limit(now: float, seconds: float, code: str, message: str) -> _Limit | None:
    return _Limit(now + seconds, code, message.format(seconds)) if seconds > 0 else None


async def _next(source: AsyncGenerator[Delta, None], limits: list[_Limit]) -> Delta | None:
    """The next delta, None at the end."""
    nearest = min(limits, key=lambda limit: limit.at, default=None)
    scope = asyncio.timeout_at(nearest.at if nearest else None)
    try:
        async with scope:
            return await anext(source)
    except StopAsyncIteration:
        return None
    except TimeoutError:
        if nearest is None or not scope.expired():
            raise
        raise ModelFailure("transient", nearest.code, nearest.message) from None
