"""What happens in a system while it is struck: the turns that run, and what their client does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from everturn import PendingCall, TemporalUnavailable
from tests.chaos.stage import WAIT, Planned, Stage

Scenario = Callable[[Stage], Awaitable[None]]
LONG = "fact " * 400


def words(count: int) -> str:
    return " ".join(f"w{number:04d}" for number in range(1, count + 1))


def said(text: str) -> Planned:
    return Planned(f"[[say text='{text}']]", answer=text)


async def tools(stage: Stage, agent: str = "plain") -> None:
    """Two to four calls side by side, an answer, and up to two turns that wait behind."""
    calls, tokens = stage.dice.randint(2, 4), stage.dice.randint(15, 30)
    script = f"[[tools calls={calls} | text tokens={tokens} delay_ms=15]]"
    await stage.submit(Planned(script, agent, answer=words(tokens), requests=2, calls=calls))
    for number in range(stage.dice.randint(0, 2)):
        await stage.submit(said(f"behind {number}"))


async def hooks(stage: Stage) -> None:
    """The same with a hook at every point."""
    await tools(stage, "watched")


async def queue(stage: Stage) -> None:
    """Three or four turns of one thread, submitted at once."""
    tokens = stage.dice.randint(10, 20)
    await stage.submit(Planned(f"[[text tokens={tokens} delay_ms=20]]", answer=words(tokens)))
    for number in range(stage.dice.randint(2, 3)):
        await stage.submit(said(f"queued {number}"))


async def retry(stage: Stage) -> None:
    """The provider fails once."""
    script = "[[status code=500 retry_after_ms=50 times=1 then=say text=recovered]]"
    await stage.submit(Planned(script, answer="recovered", requests=2))


async def failure(stage: Stage) -> None:
    """The provider fails for good, after some words; the next turn of the thread works."""
    script = "[[stream_error tokens=3 message=content_policy_violation]]"
    await stage.submit(Planned(script, "watched", status="error", answer=words(3)))
    await stage.submit(said("after the failure"))


async def approval(stage: Stage) -> None:
    """A call that waits for a person."""
    turn = await stage.submit(_asking("transfer"))
    await _answered(stage, turn.turn.request_id, stage.chat.approve)


async def approval_of_nobody(stage: Stage) -> None:
    """The worker dies while nothing runs, only a person is waited for; the answer comes while no worker lives."""
    turn = await stage.submit(_asking("transfer"))
    await _pending(stage)
    stage.workers[0].kill()
    await stage.workers[0].wait()
    await _answered(stage, turn.turn.request_id, stage.chat.approve)


async def client_tool(stage: Stage) -> None:
    """A call that the front end answers."""
    turn = await stage.submit(_asking("locate"))

    async def answer(request_id: str, tool_call_id: str) -> str:
        return await stage.chat.submit_tool_result(request_id, tool_call_id, {"city": "Oslo"})

    await _answered(stage, turn.turn.request_id, answer)


async def cancel(stage: Stage) -> None:
    """A long answer that its user stops; the next turn of the thread works.

    The words may be lost: a worker that dies when the cancel arrives leaves a step that another one begins anew, and
    then hears of the cancel.
    """
    planned = Planned("[[text tokens=4000 delay_ms=20]]", status="aborted", answer="w0001", begins=True)
    turn = await stage.submit(planned)
    await turn.shows(stage.dice.randint(1, 5))
    assert await stage.chat.cancel_chat(turn.turn.request_id, "enough") == "cancelled"
    await stage.submit(said("after the stop"))


async def folding(stage: Stage) -> None:
    """A thread that has become too long for its model, and is compacted."""
    for number in range(6):
        running = await stage.submit(
            Planned(f"[[say text='answer {number}']] {LONG}", "folding", answer=f"answer {number}")
        )
        async with asyncio.timeout(WAIT):
            await running.turn.result()
    await stage.submit(Planned("[[overflow limit=9000]]", "folding", answer="fits", requests=2))


def _asking(tool: str) -> Planned:
    return Planned(f"[[tools calls=1 tool={tool} | say text=agreed]]", "asking", answer="agreed", requests=2, calls=1)


async def _pending(stage: Stage) -> PendingCall:
    async with asyncio.timeout(WAIT):
        while not (found := await stage.chat.pending(stage.thread)):
            await asyncio.sleep(0.05)
    return found[0]


async def _answered(stage: Stage, request_id: str, answer: Callable[[str, str], Awaitable[str]]) -> None:
    """Answers as a front end does that asks again when nobody takes the answer."""
    pending = await _pending(stage)
    async with asyncio.timeout(WAIT):
        while True:
            try:
                outcome = await answer(request_id, pending.tool_call_id)
            except TemporalUnavailable:
                continue
            if outcome in ("accepted", "already_resolved"):
                return
            raise AssertionError(f"the answer was {outcome}")
