"""Turns that began on an older version go on: every recorded history replays on today's workflow.

The histories are recorded by record.py and never edited.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from everturn.workflows.turn import TurnWorkflow
from tests.replay.record import ENDINGS, HISTORIES

RECORDED = sorted(HISTORIES.glob("*.json"))


def test_every_kind_of_ending_is_recorded() -> None:
    assert {path.stem for path in RECORDED} >= set(ENDINGS)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_recorded_turn_replays(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    await Replayer(workflows=[TurnWorkflow]).replay_workflow(history)


async def test_a_turn_that_went_another_way_does_not_replay() -> None:
    text = (HISTORIES / "tools.json").read_text()
    assert "everturn.run_tool" in text
    other = WorkflowHistory.from_json("tools", text.replace("everturn.run_tool", "everturn.other_tool"))
    with pytest.raises(NondeterminismError):
        await Replayer(workflows=[TurnWorkflow]).replay_workflow(other)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_turn_tells_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text()
    assert set(re.findall(r'"identity": "(.*?)"', text)) == {"worker"}
    assert set(re.findall(r'"stackTrace": "(.*?)"', text)) <= {""}
