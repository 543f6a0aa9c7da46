"""Whether a turn's history still leads the workflow the same way."""

from __future__ import annotations

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from everturn.workflows.turn import TurnWorkflow


async def assert_replays(history: WorkflowHistory) -> None:
    """Raises AssertionError if today's workflow would go another way than this history, recorded now or years ago."""
    try:
        await Replayer(workflows=[TurnWorkflow]).replay_workflow(history)
    except NondeterminismError as error:
        raise AssertionError(f"turn {history.workflow_id!r} does not replay: {error}") from error
