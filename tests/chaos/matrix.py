"""Runs many cells at once and tells what came of them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client

from everturn.activities.scripted.server import ScriptedModelServer
from tests.chaos.cell import Cell, Outcome, run_cell
from tests.chaos.databases import Databases
from tests.chaos.nursery import open_nursery
from tests.chaos.stage import Services

REQUESTS_KEPT = 50_000


@asynccontextmanager
async def open_services(address: str) -> AsyncIterator[Services]:
    """What all systems share, on a Temporal server that runs."""
    async with ScriptedModelServer(REQUESTS_KEPT) as model, open_nursery() as nursery:
        yield Services(address, await Client.connect(address), model, nursery)


async def run_cells(
    services: Services,
    databases: Databases,
    cells: Sequence[Cell],
    folder: Path,
    at_once: int,
    told: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """The outcomes, in the order of the cells. Most of a cell's time is spent waiting for Temporal to notice a death,
    so many run side by side."""
    gate = asyncio.Semaphore(at_once)

    async def run(cell: Cell) -> Outcome:
        async with gate:
            place = Path(tempfile.mkdtemp(prefix="cell-", dir=folder))
            async with databases.fresh(cell.database, place) as url:
                outcome = await run_cell(services, cell, url, place)
            told(outcome)
            return outcome

    return await asyncio.gather(*(run(cell) for cell in cells))


def table(outcomes: Sequence[Outcome]) -> str:
    """Point by seed and database: seconds from the kill to the last turn's end, or RED; then what is wrong."""
    columns = sorted({(outcome.cell.database, outcome.cell.seed) for outcome in outcomes})
    names = list(dict.fromkeys(outcome.cell.point.name for outcome in outcomes))
    width = max(map(len, names))
    by_place = {(o.cell.point.name, o.cell.database, o.cell.seed): o for o in outcomes}
    lines = [" " * width + "".join(f"{f'{database[:6]} {seed}':>11}" for database, seed in columns)]
    for name in names:
        found = [by_place.get((name, *column)) for column in columns]
        lines.append(f"{name:<{width}}" + "".join(f"{_mark(outcome):>11}" for outcome in found))
    reds = [outcome for outcome in outcomes if outcome.faults]
    for red in reds:
        lines.append(f"\nRED {red.cell.point.name}, seed {red.cell.seed}, {red.cell.database}:")
        lines += [f"  {fault}" for fault in red.faults]
    lines.append(f"\n{len(names)} points, {len(outcomes)} kills: {len(outcomes) - len(reds)} green, {len(reds)} red")
    return "\n".join(lines)


def _mark(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    return "RED" if outcome.faults else f"{outcome.seconds:.1f} s"
