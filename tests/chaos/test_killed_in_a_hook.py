"""Workers that die while a hook runs: it runs again under the same key, and the turn goes on as if nothing was."""

from __future__ import annotations

import asyncio

import pytest

from tests.chaos.conftest import ChaosLab

LIMIT = 60.0
CHARGE = "[[tools calls=1 tool=charge args='{\"amount\": 7}']]"
REFUSED = "[[status code=400]]"


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("point", "message", "requests"),
    [
        ("before_turn", CHARGE, 2),
        ("before_step", CHARGE, 2),
        ("before_tool_call", CHARGE, 2),
        ("on_step_finish", CHARGE, 2),
        ("on_chat_error", REFUSED, 1),
        ("on_chat_response", CHARGE, 2),
    ],
)
async def test_a_worker_killed_in_a_hook_costs_no_model_call_and_no_second_effect(
    chaos: ChaosLab, point: str, message: str, requests: int
) -> None:
    first = await chaos.house.start(CHAOS_HOOK=point, CHAOS_HOOK_SECONDS="120")
    turn = await chaos.chat.submit("thread", message, agent="watched")
    async with asyncio.timeout(LIMIT):
        while not any(line.startswith(point) for line in chaos.effect_lines()):
            await asyncio.sleep(0.05)
    first.kill()
    await chaos.house.start(CHAOS_HOOK=point)
    result = await turn.result(LIMIT)
    if message == REFUSED:
        assert (result.status, result.error and result.error.message) == ("error", "sorry")
    else:
        assert (result.status, result.text) == ("completed", "done: 1 results")
        assert chaos.effect_lines().count("charge 7") == 1
    assert len(chaos.model_server.requests) == requests

    def runs() -> list[str]:
        return [line for line in chaos.effect_lines() if line.startswith(point)]

    async with asyncio.timeout(LIMIT):
        while len(runs()) < 2 or not any(t.point == point for t in (await turn.info()).hook_traces):
            await asyncio.sleep(0.05)
    lost, again, *others = runs()
    assert lost == again
    assert again not in others
    roles = [m.role for m in await chaos.chat.messages("thread")]
    assert roles == (["user"] if message == REFUSED else ["user", "assistant"])
