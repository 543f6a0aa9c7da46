"""One cell of the chaos matrix: a point, a seed, a database."""

from __future__ import annotations

import asyncio
import random
import signal
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.checks import complaints
from tests.chaos.points import Point
from tests.chaos.stage import WAIT, Services, Stage, open_stage

NEVER_MET = "the worker was never killed: the point was not met"


@dataclass(frozen=True, slots=True)
class Cell:
    """What is to be run."""

    point: Point
    seed: int
    database: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. faults: empty if all is well. seconds: from the kill to the end of the last turn."""

    cell: Cell
    faults: list[str]
    seconds: float


async def run_cell(services: Services, cell: Cell, store_url: str, folder: Path) -> Outcome:
    """Runs the scenario, restarts the worker once it has died, and looks at what is left. Raises nothing."""
    dice = random.Random(f"{cell.seed} {cell.point.name}")
    try:
        async with open_stage(services, store_url, folder, dice) as stage:
            return await _struck(stage, cell)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(cell, [f"{type(error).__name__}: {error} ({last.name}, line {last.lineno}); see {folder}"], 0.0)


async def _struck(stage: Stage, cell: Cell) -> Outcome:
    fault = cell.point.fault(stage.dice)
    pace = {"CHAOS_TOOL_SECONDS": f"{stage.dice.choice((0.0, 0.1)):g}"}
    first = await stage.start_worker(**pace, **(fault.environment() if fault else {}))
    playing = asyncio.ensure_future(cell.point.scenario(stage))
    try:
        code = await _death_of(first.ended, playing, stage)
        if code is None:
            return Outcome(cell, [NEVER_MET], 0.0)
        killed = time.monotonic()
        if code != -signal.SIGKILL:
            return Outcome(cell, [f"the worker ended by itself with {code}: {first.log.read_text()[-2000:]}"], 0.0)
        await stage.start_worker(**pace)
        async with asyncio.timeout(WAIT):
            await playing
        await stage.ended()
        seconds = time.monotonic() - killed
    finally:
        playing.cancel()
    return Outcome(cell, await complaints(stage, cell.point.extra), seconds)


async def _death_of(ended: asyncio.Future[int], playing: asyncio.Future[None], stage: Stage) -> int | None:
    """The worker's exit code; None if every turn came to its end without a kill."""

    async def to_the_end() -> None:
        await asyncio.wait({playing})  # not awaited itself: it goes on when this is cancelled
        playing.result()
        await stage.ended()
        for running in stage.turns:  # on_chat_response and on_turn_end come after the end that clients see
            await stage.closed(running)

    undisturbed = asyncio.ensure_future(to_the_end())
    try:
        await asyncio.wait({ended, undisturbed}, timeout=WAIT, return_when=asyncio.FIRST_COMPLETED)
        if undisturbed.done():
            undisturbed.result()  # a scenario that went wrong
        elif not ended.done():
            raise AssertionError(f"neither was the worker killed within {WAIT:g} s, nor did the turns end")
        return ended.result() if ended.done() else None
    finally:
        undisturbed.cancel()
