"""Whether a turn's history still leads the workflow the same way."""

from __future__ import annotations

from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from everturn.workflows.turn import TurnWorkflow


async def assert_replays(history: WorkflowHistory, *, data_converter: DataConverter = DataConverter.default) -> None:
    """Raises AssertionError if today's workflow would go another way than this history, recorded now or years ago.

    data_converter: the one that the history was written with, for one that is encrypted.
    """
    try:
        await Replayer(workflows=[TurnWorkflow], data_converter=data_converter).replay_workflow(history)
    except NondeterminismError as error:
        raise AssertionError(f"turn {history.workflow_id!r} does not replay: {error}") from error
