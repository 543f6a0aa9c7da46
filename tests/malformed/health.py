"""Whether a system is whole after everything that was sent to it."""

from __future__ import annotations

from everturn.turns import TERMINAL
from tests.integration.turns.lab import Lab, eventually


async def assert_whole(lab: Lab) -> None:
    """Every turn has its row and its workflow, none is half there, all are over, and the next one completes."""
    turn = await lab.play("say text=alive")
    assert (await turn.result(30)).text == "alive"
    stored = await lab.chat.list_turns(limit=1000)
    assert {summary.status for summary in stored} <= TERMINAL
    rows = {f"turn-{summary.request_id}" for summary in stored}

    async def equal() -> bool:
        listed = lab.client.list_workflows(f"TaskQueue = '{lab.task_queue}'")
        return {workflow.id async for workflow in listed} == rows

    await eventually(equal, "as many workflows as rows of turns")
