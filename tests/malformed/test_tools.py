"""Tools that return, raise and ask for what no tool should: an error result for the model, and the turn goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest

from everturn import Agent, Model, ToolContext, tool
from everturn.activities.scripted.ask import Ask
from everturn.activities.scripted.moves import CallPart, Finish, Move, Say
from everturn.activities.scripted.server import ScriptedModelServer
from tests.malformed.conftest import StartLab, sample
from tests.malformed.health import assert_whole
from tests.malformed.hook_answers import HUGE, WRONG, Mute
from tests.malformed.values import NO_JSON, ODD_JSON

OUTPUTS: Final[tuple[Any, ...]] = (*NO_JSON, *ODD_JSON, *WRONG)
RAISED: Final = (
    *(Mute(), ValueError(), ValueError("\ud800"), ValueError("nul\x00"), ValueError(HUGE), asyncio.CancelledError()),
    *(
        SystemExit(3),
        GeneratorExit(),
        StopIteration(),
        StopAsyncIteration(),
        RecursionError(),
        MemoryError(),
        OSError(5),
    ),
    *(ExceptionGroup("many", [Mute(), ValueError("x")]), TimeoutError("mine"), KeyError(object()), UnicodeError("x")),
)
CALLS_A_STEP: Final = 60


@tool
def give(number: int) -> Any:
    """A plain function; returns something odd."""
    return OUTPUTS[number]


@tool
async def give_later(number: int) -> Any:
    """A coroutine."""
    return OUTPUTS[number]


@tool
async def give_pieces(number: int) -> AsyncIterator[Any]:
    """A generator."""
    yield OUTPUTS[number]


@tool
async def fail(number: int) -> Any:
    """Raises something odd."""
    raise RAISED[number]


@tool
def fail_in_thread(number: int) -> Any:
    """The same in a thread."""
    raise RAISED[number]


@tool
async def report(number: int, ctx: ToolContext) -> str:
    """Tells of its progress, and logs, something odd."""
    ctx.log(OUTPUTS[0], OUTPUTS[number], OUTPUTS[number] if isinstance(OUTPUTS[number], str) else "info")  # type: ignore[arg-type]
    ctx.progress(OUTPUTS[number])
    return "done"


@tool(needs_approval=lambda given: OUTPUTS[given["number"]] and False)  # type: ignore[arg-type,return-value]
async def guarded(number: int) -> str:
    """Its rule says no in odd ways."""
    return "done"


PLAN: Final = [
    *((name, number) for name in ("give", "give_later", "give_pieces") for number in range(0, len(OUTPUTS), 2)),
    *((name, number) for name in ("fail", "fail_in_thread") for number in range(len(RAISED))),
    *(("report", number) for number in range(0, len(OUTPUTS), 6)),
    *(("guarded", number) for number in range(0, len(OUTPUTS), 9)),
]


def moves(ask: Ask) -> Iterator[Move]:
    """`calls 2` in the user's message asks for the second part of the plan."""
    if ask.step:
        yield from (Say("done"), Finish("stop"))
        return
    part = int(ask.user_text.removeprefix("calls "))
    for place, (name, number) in enumerate(PLAN[part * CALLS_A_STEP : (part + 1) * CALLS_A_STEP]):
        yield CallPart(place, f"call_{part}_{place}", name, json.dumps({"number": number}))
    yield Finish("tool_calls")


@pytest.fixture
def odd_agent() -> Agent:
    class Odd(Agent):
        name = "odd"
        tools = (give, give_later, give_pieces, fail, fail_in_thread, report, guarded)

    return Odd()


async def test_whatever_tools_do_the_model_gets_a_result_and_the_turn_goes_on(
    start: StartLab, odd_agent: Agent, model_server: ScriptedModelServer
) -> None:
    parts = range(-(-len(PLAN) // CALLS_A_STEP))
    async with ScriptedModelServer(play=moves) as server:
        odd_agent.model = Model("openai/odd", api_base=server.base_url)
        plain = type(
            "Plain", (Agent,), {"name": "agent", "model": Model("openai/scripted", api_base=model_server.base_url)}
        )
        async with start(odd_agent, plain()) as lab:
            turns = [await lab.submit(f"tools-{part}", f"calls {part}", "odd") for part in sample(lab, parts, 3)]
            results = await asyncio.gather(*(turn.result(50) for turn in turns))
            assert [(result.status, result.text) for result in results] == [("completed", "done")] * len(turns)
            calls = [call for turn in turns for call in (await turn.info()).tool_calls]
            assert len(calls) == sum(len(PLAN[part * CALLS_A_STEP :][:CALLS_A_STEP]) for part in sample(lab, parts, 3))
            json.dumps([call.output for call in calls], ensure_ascii=False, allow_nan=False).encode()
            wrong = [
                call for call in calls if (call.state == "error") != bool(call.error) or len(call.error or "") > 5000
            ]
            assert wrong == []
            failed = [call for call in calls if call.tool_name.startswith("fail")]
            assert {call.state for call in failed} == {"error"}
            assert all(call.error for call in failed)
            await assert_whole(lab)
