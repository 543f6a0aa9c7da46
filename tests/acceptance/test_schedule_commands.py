"""everturn schedule against a running system."""

from __future__ import annotations

import asyncio
import uuid

from tests.services.commands import CommandLine

SECONDS = 60.0


async def test_a_schedule_is_created_fires_is_listed_and_is_removed(system: CommandLine) -> None:
    name = f"nightly-{uuid.uuid4().hex[:8]}"
    thread = f"thread-{name}"
    asked = ("schedule", "create", name, thread, "echo good morning", "--agent", "support")
    created = await system.run(*asked, "--every", "1s")
    assert (created.code, created.output) == (0, f"{name}: every 0:00:01\n")
    again = await system.run(*asked, "--cron", "0 9 * * *")
    assert again.code == 1
    assert f"schedule {name!r} exists already" in again.errors
    async with asyncio.timeout(SECONDS):
        while "good morning" not in (await system.run("messages", thread)).output.replace("echo good morning", ""):
            await asyncio.sleep(0.2)
        while name not in (await system.run("schedule", "list")).output:
            await asyncio.sleep(0.2)
    listed = next(
        info for info in (await system.run("schedule", "list", "--json")).json() if info["schedule_id"] == name
    )
    assert (listed["thread_id"], listed["agent"], listed["when"]) == (thread, "support", "every 0:00:01")
    removed = await system.run("schedule", "remove", name)
    assert (removed.code, removed.output) == (0, "removed\n")
    gone = await system.run("schedule", "remove", name)
    assert gone.code == 1
    assert f"there is no schedule {name!r}" in gone.errors


async def test_a_schedule_that_cannot_be_is_bad_usage(system: CommandLine) -> None:
    refused = await system.run("schedule", "create", "never", "t", "hi", "--agent", "support", "--cron", "often")
    assert refused.code == 2
    assert "often" in refused.errors
    assert len(refused.errors.splitlines()) == 1
