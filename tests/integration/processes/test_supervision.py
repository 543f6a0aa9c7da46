"""How worker processes are started, watched and stopped, with work that does nothing."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

from tests.services.commands import Running

TOYS = Path(__file__).with_name("toys.py")
LIMIT = 30.0


async def start(kind: str) -> Running:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(TOYS), kind),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    return Running(process)


async def both_work(command: Running) -> list[int]:
    """Their process ids."""
    return [int((await command.says(rf"works {number} (\d+)")).group(1)) for number in (1, 2)]


async def gone(pid: int) -> None:
    async with asyncio.timeout(LIMIT):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.02)


async def test_sigterm_stops_all_in_order() -> None:
    async with await start("plain") as command:
        pids = await both_work(command)
        assert await command.stop() == 0
        for pid in pids:
            await gone(pid)


async def test_ctrl_c_stops_all_in_order() -> None:
    async with await start("plain") as command:
        await both_work(command)
        assert await command.stop(signal.SIGINT) == 0


async def test_one_that_does_not_stop_is_killed_and_the_exit_code_tells() -> None:
    async with await start("deaf") as command:
        pids = await both_work(command)
        assert await command.stop() == 1
        for pid in pids:
            await gone(pid)


async def test_one_that_dies_again_and_again_is_replaced_more_and_more_slowly() -> None:
    async with await start("mortal") as command:
        await both_work(command)
        await command.says(r"starts in 1 s[\s\S]*starts in 2 s")
        assert len(re.findall(r"works 2 ", command.output)) == 1
        assert await command.stop() == 0


async def test_work_that_cannot_begin_ends_all_with_its_exit_code() -> None:
    async with await start("unable") as command:
        assert await command.ended() == 7


async def test_the_processes_stop_when_their_parent_is_killed() -> None:
    async with await start("plain") as command:
        pids = await both_work(command)
        os.kill(command.process.pid, signal.SIGKILL)
        for pid in pids:
            await gone(pid)


async def test_a_parent_with_threads_does_not_fork() -> None:
    async with await start("threaded") as command:
        await both_work(command)
        assert "share no memory" in command.output
        assert await command.stop() == 0
