"""A turn that another worker has taken over: it must not go on waiting for the one that died."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.api.enums.v1 import EventType

from tests.chaos.databases import Databases
from tests.chaos.outages import Ground, kill
from tests.chaos.scenarios import words
from tests.chaos.stage import Planned, Services

TOKENS = 20


async def test_no_workflow_task_waits_for_a_worker_whose_step_was_taken_over(
    services: Services, databases: Databases, tmp_path: Path
) -> None:
    planned = Planned(f"[[text tokens={TOKENS} delay_ms=50]]", answer=words(TOKENS))
    async with asynccontextmanager(kill)(Ground(services, databases, tmp_path), 0.0) as (stage, strike):
        running = await stage.submit(planned)
        await running.shows(3)
        await strike()
        await stage.ended()
        await stage.closed(running)
        handle = services.client.get_workflow_handle(running.turn.workflow_id)
        happened = [event.event_type async for event in handle.fetch_history_events()]
    assert any(chunk.type == "data-reset" for chunk in running.seen), "the step was not taken over"
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT not in happened
