"""A worker that dies in a quick tool, which runs within the workflow task: no activity of its own tells of the loss."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from everturn.activities.pace import RUNS
from tests.chaos.databases import Databases
from tests.chaos.faults import Fault
from tests.chaos.stage import WAIT, Planned, Running, Services, Stage, open_stage


async def called(stage: Stage, tool: str, amount: int) -> Running:
    """A turn that calls the tool once."""
    arguments = json.dumps({"amount": amount})
    running = await stage.submit(
        Planned(f"[[tools calls=1 tool={tool} args='{arguments}' | say text=agreed]]", "swift")
    )
    assert running.over is not None
    async with asyncio.timeout(WAIT):
        await running.over
    return running


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("tool", "times", "state"), [("deduct", 1, "unknown"), ("jot", 2, "done")])
async def test_a_quick_tool_that_its_worker_did_not_survive_runs_again_only_if_it_may(
    services: Services, databases: Databases, tmp_path: Path, tool: str, times: int, state: str
) -> None:
    async with (
        databases.fresh("sqlite", tmp_path) as url,
        open_stage(services, url, tmp_path, random.Random(1)) as stage,
    ):
        first = await stage.start_worker(**Fault(f"tool:{tool}", "inside").environment())
        for _ in range(RUNS):
            await called(stage, tool, 0)
        struck = asyncio.ensure_future(called(stage, tool, 7))
        async with asyncio.timeout(WAIT):
            await first.wait()
        await stage.start_worker()
        info = await (await struck).turn.info()
        assert [call.state for call in info.tool_calls] == [state]
        assert info.turn.status == "completed"
        assert stage.effects().count((tool, "7")) == times
        history = stage.services.client.get_workflow_handle((await struck).turn.workflow_id).fetch_history_events()
        scheduled = [event.activity_task_scheduled_event_attributes.activity_type.name async for event in history]
        assert "everturn.run_tool" not in scheduled
