"""Turns that began on an older version go on: every recorded history replays on today's workflow.

The histories are recorded by record.py and never edited.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from everturn.activities.payloads import WORKFLOW, TurnInput, TurnOutcome
from everturn.workflows.turn import TurnWorkflow
from tests.replay.record import ENDINGS, HISTORIES

RECORDED = sorted(HISTORIES.glob("*.json"))


@workflow.defn(name=WORKFLOW, sandboxed=False)
class StrictTurnWorkflow(TurnWorkflow):
    """The turn without its failure types: with them, a replay that goes another way fails the workflow, while the
    replayer waits for a task to fail, for ever."""

    @workflow.init
    def __init__(self, turn: TurnInput) -> None:
        super().__init__(turn)

    @workflow.run
    async def run(self, turn: TurnInput) -> TurnOutcome:
        """See base class."""
        return await super().run(turn)


def test_every_kind_of_ending_is_recorded() -> None:
    assert {path.stem for path in RECORDED} >= set(ENDINGS)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_recorded_turn_replays(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    await Replayer(workflows=[StrictTurnWorkflow]).replay_workflow(history)


async def test_a_turn_that_went_another_way_does_not_replay() -> None:
    text = (HISTORIES / "tools.json").read_text()
    assert "everturn.run_tool" in text
    other = WorkflowHistory.from_json("tools", text.replace("everturn.run_tool", "everturn.other_tool"))
    with pytest.raises(NondeterminismError):
        await Replayer(workflows=[StrictTurnWorkflow]).replay_workflow(other)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_turn_tells_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text()
    assert set(re.findall(r'"identity": "(.*?)"', text)) == {"worker"}
    assert set(re.findall(r'"stackTrace": "(.*?)"', text)) <= {""}
