"""What each hook point costs a turn: hooks that do nothing, at one point, at all points, against none.

    python -m benchmarks.hooks [turns]

Every measured turn has a partner of the same kind without hooks, right beside it, and all points take turns within one
run: what else the machine does meets all of them. "answer" is the time to the end of the stream, which a user waits
for; "turn" is the time to the end of the workflow, with the points that come after the answer. A cost is the median of
the differences of the pairs, ± half of their middle half.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import WorkflowFailureError

from benchmarks.system import System, percentile, running_system
from everturn.hooks.points import CLASSIFY_CHAT_ERROR, HOOK_POINTS, ON_CHAT_ERROR
from everturn.ids import workflow_id
from everturn.worker.exit import guarded_exit

AGENTS = Path(__file__).with_name("hooked_agents.py")
TURN = "[[tools calls=2 sequential=1 tool=lookup finish=text]]"
FAILING_TURN = "[[status code=400]]"
OF_FAILING_TURNS = (ON_CHAT_ERROR, CLASSIFY_CHAT_ERROR)
EVERY_POINT = "every point"


@dataclass
class Times:
    """Milliseconds of one kind of turn, in order."""

    answer: list[float] = field(default_factory=list[float])
    turn: list[float] = field(default_factory=list[float])


@dataclass
class Pairs:
    """Turns with hooks and their partners without. visits: hook runs in one turn."""

    label: str
    agent: str
    script: str
    hooked: Times = field(default_factory=Times)
    plain: Times = field(default_factory=Times)
    visits: int = 0

    def row(self) -> str:
        return f"{self.label:20} {self.visits:6}   {self._cost('answer')}   {self._cost('turn')}"

    def _cost(self, what: str) -> str:
        hooked: list[float] = getattr(self.hooked, what)
        plain: list[float] = getattr(self.plain, what)
        differences = [ours - theirs for ours, theirs in zip(hooked, plain, strict=True)]
        spread = (percentile(differences, 0.75) - percentile(differences, 0.25)) / 2
        middle = percentile(differences, 0.5)
        ratio = percentile(hooked, 0.5) / percentile(plain, 0.5)
        each = middle / self.visits if self.visits else 0.0
        return f"{ratio:5.2f}  {middle:+7.1f} ±{spread:5.1f}  {each:+6.2f}"


def contenders() -> Iterator[Pairs]:
    for point in HOOK_POINTS:
        yield Pairs(point, point, FAILING_TURN if point in OF_FAILING_TURNS else TURN)
    yield Pairs(EVERY_POINT, "hooked", TURN)


async def one_turn(system: System, agent: str, thread: str, script: str, times: Times) -> str:
    """Plays a turn to its end; its request id."""
    started = time.perf_counter()
    turn = await system.chat.submit(thread, script, agent=agent)
    async for _ in turn.stream():
        pass
    times.answer.append((time.perf_counter() - started) * 1000)
    with contextlib.suppress(WorkflowFailureError):  # the failing turns
        await system.temporal.get_workflow_handle(workflow_id(turn.request_id)).result()
    times.turn.append((time.perf_counter() - started) * 1000)
    return turn.request_id


async def one_pair(system: System, pairs: Pairs, number: int) -> None:
    """Which of the two goes first changes from pair to pair."""
    for hooked in (True, False) if number % 2 else (False, True):
        kind = "hooked" if hooked else "plain"
        agent, times = (pairs.agent, pairs.hooked) if hooked else ("bench", pairs.plain)
        request_id = await one_turn(system, agent, f"{pairs.agent}-{kind}-{number}", pairs.script, times)
        if hooked and not pairs.visits:
            info = await system.chat.inspect(request_id)
            pairs.visits = sum(trace.hook == "Noop" for trace in info.hook_traces)


async def main(repetitions: int) -> int:
    async with running_system(agents=AGENTS) as system:
        for pairs in contenders():
            await one_pair(system, pairs, 0)  # what a first turn of its kind costs belongs to no point
        measured = list(contenders())
        for number in range(repetitions):
            for pairs in measured:
                await one_pair(system, pairs, number)
    print(f"{repetitions} pairs a point, ms        answer                          turn")
    print("point                visits   ratio      cost          a run   ratio      cost          a run")
    for pairs in measured:
        print(pairs.row())
    return 0


if __name__ == "__main__":
    guarded_exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)))
