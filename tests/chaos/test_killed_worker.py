"""The short form of `make chaos`: one seed, SQLite, and a choice of points that has one of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.cell import Cell, run_cell
from tests.chaos.databases import Databases
from tests.chaos.matrix import run_cells, table
from tests.chaos.points import POINTS, Point
from tests.chaos.scenarios import tools
from tests.chaos.stage import Services

SEED = 1
AT_ONCE = 10
CHOICE = [
    "before commit:begin in tools",
    "after commit:append in tools",
    "before commit:commit_step in tools",
    "after activity:model_step in tools",
    "before commit:settle_call in tools",
    "inside tool:charge in tools",
    "inside tool:remember in tools",
    "after commit:finish in queue",
    "after commit:open_wait in approval",
    "while an approval is waited for",
    "before activity:interrupt in cancel",
    "after commit:fold in folding",
    "inside hook:before_turn in hooks",
    "inside hook:before_step in hooks",
    "inside hook:before_tool_call in hooks",
    "inside hook:after_tool_call in hooks",
    "inside hook:on_step_finish in hooks",
    "inside hook:on_chat_error in failure",
    "inside hook:on_chat_response in hooks",
    "inside hook:on_turn_end in hooks",
]
"""Most of the time passes until Temporal has noticed a death, so all of them run side by side."""


@pytest.mark.timeout(240)
async def test_turns_go_on_as_if_nothing_was_when_their_worker_is_killed(
    services: Services, databases: Databases, tmp_path: Path
) -> None:
    by_name = {point.name: point for point in POINTS}
    cells = [Cell(by_name[name], SEED, "sqlite") for name in CHOICE]
    outcomes = await run_cells(services, databases, cells, tmp_path, AT_ONCE)
    assert not any(outcome.faults for outcome in outcomes), table(outcomes)


async def test_a_point_that_is_never_met_is_red(services: Services, databases: Databases, tmp_path: Path) -> None:
    nowhere = Point("nowhere", tools, "commit:nothing", "before")
    async with databases.fresh("sqlite", tmp_path) as url:
        outcome = await run_cell(services, Cell(nowhere, SEED, "sqlite"), url, tmp_path)
    assert outcome.faults == ["the worker was never killed: the point was not met"]


def test_no_two_points_have_the_same_name_and_there_are_at_least_twenty() -> None:
    names = [point.name for point in POINTS]
    assert len(names) == len(set(names)) >= 20
