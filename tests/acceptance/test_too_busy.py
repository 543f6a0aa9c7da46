"""A thread that takes no more turns, as the command line tells it."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

from tests.services.commands import PATIENCE, CommandLine


async def test_submit_to_a_full_thread_is_exit_code_1_with_one_line_that_says_what_to_do(system: CommandLine) -> None:
    narrow = replace(system, environment={**system.environment, "EVERTURN_MAX_QUEUED_PER_THREAD": "1"})
    thread = f"thread-{uuid.uuid4().hex[:8]}"
    asked = ("submit", thread, "hi", "--agent", "slow", "--detach")
    listed = ("turns", "--thread", thread, "--status", "queued", "--json")
    running, waiting = [(await system.run(*asked)).output.strip() for _ in range(2)]
    async with asyncio.timeout(PATIENCE):
        while f'"{waiting}"' not in (await system.run(*listed)).output:
            await asyncio.sleep(0.05)
    refused = await narrow.run(*asked)
    assert (refused.code, refused.output) == (1, "")
    assert refused.errors == (
        f"everturn: thread '{thread}' has 1 queued turns and the limit is 1; "
        "submit again when some of them are over, or cancel some\n"
    )
    for request_id in (waiting, running):
        assert (await system.run("cancel", request_id)).code == 0
