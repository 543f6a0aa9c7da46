"""kill -9 in the middle of an answer of 100 tokens at 50 a second; a new process starts a second later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final

from benchmarks.entrant import Entrant
from benchmarks.field import Field
from benchmarks.peers.side_channel import Receiver, tap_of
from benchmarks.samples import Sample, median
from benchmarks.schedule import Budget

TOKENS: Final = 100
GAP_MS: Final = 20
_SEEN: Final = TOKENS // 4
"""Tokens of each answer that the model has written when its worker is killed."""
_DOWN: Final = 1.0
_TURNS: Final = 3
_LIMIT: Final = 150.0
_NEXT: Final = 12.0
"""Seconds until the next contender's worker is killed: those that take longer only wait for timeouts."""


async def measure(field: Field, budget: Budget) -> list[Sample]:
    samples: list[Sample] = []
    for number in budget.rounds():
        running: list[asyncio.Task[Sample]] = []
        for name, entrant in field.entrants.items():
            kind = entrant.contender.after_kill
            if kind == "nothing":
                continue
            one = _application if kind == "application" else _worker
            running.append(asyncio.create_task(_noted(one(field, name), name, number)))
            await asyncio.wait(running[-1:], timeout=_NEXT)
        samples += await asyncio.gather(*running)
    return samples


async def _noted(work: Coroutine[Any, Any, Sample], name: str, number: int) -> Sample:
    sample: Sample = {"section": "killed", "contender": name, "round": number}
    try:
        return sample | await work
    except (RuntimeError, TimeoutError) as error:
        return sample | {"error": f"{type(error).__name__}: {error}"}


async def _worker(field: Field, name: str) -> Sample:
    entrant = field.entrants[name]
    await _begin(entrant, _TURNS)
    turns = list(entrant.announced)
    await _in_the_middle(field, turns)
    killed = time.time()
    entrant.kill()
    await asyncio.sleep(_DOWN)
    await entrant.start_worker()
    done = (await entrant.finished(_LIMIT))["turns"]
    problems = [turn["error"] for turn in done if turn.get("error")]
    repeats = [len(turn.get("tokens", [])) - len({token for token, _ in turn.get("tokens", [])}) for turn in done]
    return {
        "completed_s": median(turn["ended"] - killed for turn in done),
        "asked_again_s": median([await _asked_again(field, turn, killed) for turn in turns]),
        "repeated": median(repeats),
        "error": problems[0] if problems else None,
    }


async def _application(field: Field, name: str) -> Sample:
    """One that runs turns in its own process: the viewer of the stream is this process."""
    receiver = Receiver()
    await receiver.start()
    known = field.entrants[name]
    variables = {**known.variables, "BENCH_PORT": str(receiver.port), "BENCH_NAME": f"{name}-killed"}
    entrant = replace(known, name=f"{name}-killed", variables=variables, client=None, worker=None)
    await entrant.start_client()
    await entrant.warm_up()
    await _begin(entrant, 1)
    turn = entrant.announced[0]
    tap = tap_of(receiver, turn)
    await _in_the_middle(field, [turn])
    killed = time.time()
    entrant.kill()
    await asyncio.sleep(_DOWN)
    entrant.variables = {**variables, "BENCH_RECOVERED": turn}
    await entrant.start_client()
    done = (await entrant.turns(tokens=TOKENS, limit=_LIMIT))["turns"][0]
    return {
        "completed_s": done["ended"] - killed,
        "asked_again_s": await _asked_again(field, turn, killed),
        "repeated": len(tap.tokens) - len({token for token, _ in tap.tokens}),
        "error": done.get("error"),
    }


async def _begin(entrant: Entrant, count: int) -> None:
    await entrant.begin(count=count, at_once=count, earlier=0, limit=_LIMIT, tools=2, tokens=TOKENS, gap_ms=GAP_MS)


async def _in_the_middle(field: Field, turns: list[str]) -> None:
    """Waits until the model has written a quarter of each answer."""
    async with asyncio.timeout(60):
        for turn in turns:
            while not any(len(asked["written"]) >= _SEEN for asked in await field.seen(turn)):
                await asyncio.sleep(0.02)


async def _asked_again(field: Field, turn: str, killed: float) -> float:
    """Seconds from the kill to the model's next request; the wait of a turn that was over by then does not count."""
    return min((asked["at"] - killed for asked in await field.seen(turn) if asked["at"] > killed), default=0.0)
