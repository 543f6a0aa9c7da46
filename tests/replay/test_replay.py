"""Turns that began on an older version go on: every recorded history replays on today's workflow.

The histories are recorded by record.py and never edited.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from everturn.worker.versioning import WORKFLOWS
from everturn.workflows.turn import TurnWorkflow
from tests.replay.paths import PATHS
from tests.replay.record import HISTORIES
from tests.unit.protocol import of_the_code

RECORDED = sorted(HISTORIES.glob("*.json"))
FINISH = TurnWorkflow._finish
CLOSED = re.compile("EVENT_TYPE_WORKFLOW_EXECUTION_(COMPLETED|FAILED)")


def names_in(history: Any) -> Iterator[str]:
    """Every activity of a history, local ones included, and the signals and updates that it took."""
    for event in history["events"]:
        if scheduled := event.get("activityTaskScheduledEventAttributes"):
            yield scheduled["activityType"]["name"]
        if marker := event.get("markerRecordedEventAttributes"):
            (payload,) = marker["details"]["data"]["payloads"]
            yield json.loads(base64.b64decode(payload["data"]))["activity_type"]
        if signal := event.get("workflowExecutionSignaledEventAttributes"):
            yield f"EverturnTurn.{signal['signalName']}"
        if update := event.get("workflowExecutionUpdateAcceptedEventAttributes"):
            yield f"EverturnTurn.{update['acceptedRequest']['input']['name']}"


def test_every_path_is_recorded() -> None:
    assert {path.stem for path in RECORDED} >= set(PATHS)


def test_every_activity_signal_and_update_is_in_some_recorded_history() -> None:
    recorded = {name for path in RECORDED for name in names_in(json.loads(path.read_text()))}
    code = of_the_code()
    lasting = code["Activities"] | {name for name in code["Workflows"] if "." in name}
    assert lasting - recorded == {"EverturnTurn.headline"}, "a query leaves no trace; for others add a path to paths.py"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_recorded_turn_replays(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    await Replayer(workflows=WORKFLOWS).replay_workflow(history)


async def test_a_turn_that_went_another_way_does_not_replay() -> None:
    text = (HISTORIES / "tools.json").read_text()
    assert "everturn.run_tool" in text
    other = WorkflowHistory.from_json("tools", text.replace("everturn.run_tool", "everturn.other_tool"))
    with pytest.raises(NondeterminismError):
        await Replayer(workflows=WORKFLOWS).replay_workflow(other)


async def _patched_end(self: TurnWorkflow, end: Any, **options: Any) -> Any:
    if workflow.patched("a-moment-before-the-end"):
        await workflow.sleep(1)
    return await FINISH(self, end, **options)


async def _changed_end(self: TurnWorkflow, end: Any, **options: Any) -> Any:
    await workflow.sleep(1)
    return await FINISH(self, end, **options)


@pytest.mark.parametrize(("changed", "goes_on"), [(_patched_end, True), (_changed_end, False)])
async def test_a_changed_order_of_commands_needs_a_patch(
    monkeypatch: pytest.MonkeyPatch, changed: Any, goes_on: bool
) -> None:
    """The recipe of docs/changing-the-workflow.md: turns that are past the place keep the old way."""
    monkeypatch.setattr(TurnWorkflow, "_finish", changed)
    history = WorkflowHistory.from_json("plain", (HISTORIES / "plain.json").read_text())
    with contextlib.nullcontext() if goes_on else pytest.raises(NondeterminismError):
        await Replayer(workflows=WORKFLOWS).replay_workflow(history)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_turn_is_whole_and_tells_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text()
    assert CLOSED.fullmatch(json.loads(text)["events"][-1]["eventType"])
    assert set(re.findall(r'"identity": "(.*?)"', text)) == {"worker"}
    assert set(re.findall(r'"stackTrace": "(.*?)"', text)) <= {""}
