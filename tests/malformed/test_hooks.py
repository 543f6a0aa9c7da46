"""Hooks whose answers, contexts and log lines are wrong: traced or one clear error, and the turn ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from everturn import Agent, Allow, Ask, Block, Hooks, Replace, StepConfig, Substitute, TurnConfig, TurnError, tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.contexts import HookContext, TurnRef
from everturn.hooks.decisions import NextModel
from everturn.hooks.hook import Hooks as AnyHooks
from everturn.hooks.log import HookLog
from everturn.hooks.points import HOOK_POINTS
from everturn.hooks.registry import BoundHook
from everturn.hooks.runner import run_hook
from tests.integration.turns.lab import Lab, scripted
from tests.malformed.conftest import StartLab, sample
from tests.malformed.hook_answers import WRONG, answers, can_be_made

PATIENCE: Final = 50.0
ANSWERS: Final = answers()
PLAYED: Final = [number for number, (_, _, answer) in enumerate(ANSWERS) if can_be_made(answer)][::3]
"""Those that get as far as a turn, and of these every third; the others are one clear error where they are made."""
RIGHT: Final[dict[str, tuple[type, ...]]] = {
    "before_turn": (TurnConfig, Block),
    "before_step": (StepConfig,),
    "before_tool_call": (Allow, Ask, Block, Substitute),
    "after_tool_call": (Replace,),
    "on_chat_error": (TurnError, Exception, str),
    "classify_chat_error": (str, NextModel),
}
KNOWN_ERRORS: Final = frozenset({"HookFailed", "bad_request", "invalid_output", "authentication", "model_not_found"})
SCRIPT: Final = "[[tools tool=note args='{\"text\": \"a\"}' | say text='{}']] go"


@tool
async def note(text: str) -> str:
    """Notes something."""
    return text


@pytest.mark.parametrize("point", HOOK_POINTS)
async def test_answers_of_a_wrong_type_are_named_whatever_they_are(point: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        for answer in WRONG:
            hook = BoundHook("odd", point, lambda ctx, answer=answer: answer, AnyHooks())  # type: ignore[misc]
            context = HookContext(TurnRef("request", "thread", "agent"))
            run = await run_hook(hook, HookLog(), context, answers=RIGHT.get(point, ()), executor=threads)
            if answer is not None and not isinstance(answer, RIGHT.get(point, ())):
                assert run.outcome == "invalid"
            assert run.ok or (run.message and len(run.message.encode()) <= 2000)


def _acting(point: str, base: type) -> Any:
    """A class whose method of one point gives the answer that the turn's body asks for."""

    def lead(self: Any, first: Any, ctx: Any) -> Any:
        return ANSWERS[ctx.body["number"]][2]() if ctx.body and ctx.body["point"] == point else None

    def alone(self: Any, ctx: Any) -> Any:
        return lead(self, None, ctx)

    method = lead if point in ("on_chunk", "on_chat_error", "classify_chat_error") else alone
    return type(f"{base.__name__}_{point}", (base,), {point: method})


def _agents(server: ScriptedModelServer) -> Iterator[Agent]:
    """One with the answers as its own methods, one with added hooks."""
    shared: dict[str, Any] = {"model": scripted(server), "tools": (note,), "max_steps": 3}
    points = dict.fromkeys(point for point, _, _ in ANSWERS)
    base: Any = Agent
    for point in points:
        base = _acting(point, base)
    yield type("Own", (base,), {"name": "own", **shared})()
    yield type("Added", (Agent,), {"name": "added", "hooks": [_acting(p, Hooks)() for p in points], **shared})()


async def test_turns_whose_hooks_answer_nonsense_end_with_one_clear_error_or_a_right_result(
    start: StartLab, model_server: ScriptedModelServer
) -> None:
    async with start(*_agents(model_server)) as lab:
        gate = asyncio.Semaphore(20)

        async def problem(number: int) -> str | None:
            point, what, _ = ANSWERS[number]
            agent = ("own", "added")[PLAYED.index(number) % 2]
            async with gate:
                said = await _turn(lab, number, agent)
                return f"{agent}.{point} {what}: {said}" if said else None

        found = [said for said in await asyncio.gather(*map(problem, sample(lab, PLAYED))) if said]
        assert found == []
        assert (await lab.run(lab.thread(), "[[ok]]", "own")).status == "completed"


async def _turn(lab: Lab, number: int, agent: str) -> str | None:
    point = ANSWERS[number][0]
    failing = point in ("on_chat_error", "classify_chat_error")
    words = "[[status code=400]]" if failing else SCRIPT
    turn = await lab.submit(lab.thread(), words, agent, body={"point": point, "number": number})
    try:
        result = await turn.result(PATIENCE)
    except TimeoutError as error:
        return str(error)
    info = await turn.info()
    json.dumps(info.as_json(), ensure_ascii=False, allow_nan=False).encode()
    if result.status != "error":
        return None if result.status in ("completed", "blocked") and not failing else str(result)
    if result.error is None or len(result.error.message) > 5000:
        return str(result.error)[:300]
    if point == "on_chat_error" or (result.error.type in KNOWN_ERRORS and result.error.message.strip()):
        return None
    return str(result.error)[:300]
