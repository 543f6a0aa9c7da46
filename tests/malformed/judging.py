"""Whether a malformed input was met with one clear error or with a right result, and nothing else."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from everturn import EverturnError

MAX_MESSAGE = 1200
PATIENCE = 50.0


@dataclass(frozen=True)
class Case:
    """One input. named: a word that the error's message must contain. fits: what a call that succeeds may return; None
    if it must not succeed."""

    what: str
    call: Callable[[], Awaitable[Any] | Any]
    named: str = ""
    fits: Callable[[Any], bool] | None = None


async def complaints(cases: Iterable[Case], at_once: int = 40) -> list[str]:
    """Runs all cases and says which were not met as they should be."""
    gate = asyncio.Semaphore(at_once)

    async def judged(case: Case) -> str | None:
        async with gate:
            return await judge(case)

    return [said for said in await asyncio.gather(*map(judged, cases)) if said]


async def judge(case: Case) -> str | None:
    """None if all is well."""
    try:
        async with asyncio.timeout(PATIENCE):
            result = case.call()
            if isinstance(result, Awaitable):
                result = await result
    except EverturnError as error:
        if case.fits is not None:
            return f"{case.what}: {type(error).__name__}: {str(error)[:200]}"
        return _problem_of_message(case, str(error))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{case.what}: {type(error).__name__}: {str(error)[:200]} ({where.filename}:{where.lineno})"
    if case.fits is None:
        return f"{case.what}: was accepted, with {str(result)[:200]}"
    return None if case.fits(result) else f"{case.what}: gave {str(result)[:300]}"


def _problem_of_message(case: Case, message: str) -> str | None:
    if not message.strip() or len(message) > MAX_MESSAGE or "Traceback" in message:
        return f"{case.what}: its error has no clear message, but {len(message)} characters: {message[:200]!r}"
    if case.named not in message:
        return f"{case.what}: its error does not name {case.named!r}: {message[:200]!r}"
    try:
        message.encode()
    except UnicodeEncodeError:
        return f"{case.what}: its error cannot be printed: {message[:200]!r}"
    return None


def shown(value: object) -> str:
    """A value in few words, whatever it is."""
    try:
        text = repr(value)
    except Exception as error:
        return f"a {type(value).__name__} ({type(error).__name__})"
    return text if len(text) <= 60 else f"{text[:40]}… ({type(value).__name__}, {len(text)})"
