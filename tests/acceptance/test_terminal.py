"""The commands with a person at the terminal."""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.services.commands import CommandLine

LOCAL_AGENT = """
from everturn import Agent

class Mine(Agent):
    name = "mine"
    model = "demo"
    system = "VERSION 1"
"""


def _thread() -> str:
    return f"thread-{uuid.uuid4().hex[:8]}"


async def test_the_first_ctrl_c_stops_the_turn_and_says_so(system: CommandLine) -> None:
    async with await system.in_terminal("submit", _thread(), "hi", "--agent", "slow") as terminal:
        await terminal.says("w0003")
        terminal.presses_ctrl_c()
        await terminal.says("stopping the turn; press Ctrl-C again to leave it")
        await terminal.says("stopped: user pressed stop")
        assert await terminal.ended() == 1
    newest = (await system.run("turns", "--limit", "1", "--json")).json()[0]
    assert newest["status"] == "aborted"


async def test_the_second_ctrl_c_leaves_and_says_how_to_come_back(system: CommandLine) -> None:
    nobody_works_there = CommandLine(system.folder, {**system.environment, "EVERTURN_TASK_QUEUE": "deserted"})
    async with await nobody_works_there.in_terminal("submit", _thread(), "hi", "--agent", "slow") as terminal:
        await terminal.says("waiting for a worker")
        terminal.presses_ctrl_c()
        await terminal.says("press Ctrl-C again")
        terminal.presses_ctrl_c()
        await terminal.says("left; to see how it ends: everturn stream")
        assert await terminal.ended() == 130


async def test_a_chat_answers_shows_its_history_and_ends(system: CommandLine) -> None:
    async with await system.in_terminal("chat", _thread(), "--agent", "support") as terminal:
        await terminal.answers("echo first words\n")
        await terminal.says(r"\nfirst words\n")
        await terminal.answers("/history\n")
        await terminal.says(r"assistant:\n  first words")
        await terminal.answers("/stop\n")
        await terminal.says("no turn of this thread is running")
        await terminal.answers("/what\n")
        await terminal.says(r"there is no command /what\n/approve")
        await terminal.answers("/quit\n")
        assert await terminal.ended() == 0


async def test_ctrl_c_in_a_chat_stops_the_turn_and_the_chat_goes_on(system: CommandLine) -> None:
    async with await system.in_terminal("chat", _thread(), "--agent", "slow") as terminal:
        await terminal.answers("hi\n")
        await terminal.says("w0003")
        terminal.presses_ctrl_c()
        await terminal.says("stopped: user pressed stop")
        await terminal.answers("/history\n")
        await terminal.says(r"user:\n  hi\nassistant:\n  w0001")
        await terminal.answers("\x04")
        assert await terminal.ended() == 0


async def test_a_chat_asks_for_approval_and_goes_on_with_the_answer(system: CommandLine) -> None:
    async with await system.in_terminal("chat", _thread(), "--agent", "careful") as terminal:
        await terminal.answers("/approve\n")
        await terminal.says("nothing waits for approval in this thread")
        await terminal.answers("delete order 7\n")
        await terminal.says(r'approve delete_order\(order_id="7"\)\?')
        await terminal.answers("never mind\n")
        await terminal.says("the turn before waits for approval")
        await terminal.answers("/approve\n")
        await terminal.says("deleted 7")
        await terminal.answers("delete order 8\n")
        await terminal.says(r'approve delete_order\(order_id="8"\)\?')
        await terminal.answers("/deny it is paid\n")
        await terminal.says("it is paid")
        await terminal.answers("/quit\n")
        assert await terminal.ended() == 0


async def test_a_chat_takes_lines_from_a_pipe(system: CommandLine) -> None:
    shown = await system.run("chat", _thread(), "--agent", "support", words="echo one\necho two\n")
    assert (shown.code, shown.output) == (0, "one\ntwo\n")


async def test_demo_is_a_chat_when_somebody_sits_there(bare: CommandLine) -> None:
    async with await bare.in_terminal("demo") as terminal:
        await terminal.says(r"Web UI +http://127\.0\.0\.1:\d+")
        await terminal.answers("What is the status of order 1002?\n")
        await terminal.says("being packed")
        await terminal.answers("/quit\n")
        assert await terminal.ended() == 0
    assert list(bare.folder.iterdir()) == []


async def test_dev_runs_the_authors_agent_and_restarts_the_worker_when_its_file_changes(bare: CommandLine) -> None:
    agent = bare.folder / "mine.py"
    agent.write_text(LOCAL_AGENT)
    log = bare.folder / ".everturn" / "worker.log"
    async with await bare.in_terminal("dev", "mine.py:Mine") as terminal:
        await terminal.answers("echo before\n")
        await terminal.says(r"\nbefore\n")
        agent.write_text(LOCAL_AGENT.replace("VERSION 1", "VERSION 2"))
        await _reads(log, "mine.py changed, restarting the worker")
        await terminal.answers("echo after\n")
        await terminal.says(r"\nafter\n")
        await terminal.answers("\x04")
        assert await terminal.ended() == 0
    assert (bare.folder / ".everturn" / "everturn.db").is_file()


async def _reads(path: Path, words: str) -> None:
    import asyncio

    async with asyncio.timeout(20):
        while words not in path.read_text():
            await asyncio.sleep(0.1)
