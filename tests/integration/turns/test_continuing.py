"""Turns without a message of their own: the agent goes on with its last one."""

from __future__ import annotations

import pytest

from everturn import Hooks, NothingToContinue, TurnContext
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent


async def test_the_last_turn_can_be_continued_and_its_message_grows(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[bool] = []

    class Watcher(Hooks):
        def before_turn(self, ctx: TurnContext) -> None:
            seen.append(ctx.continuation)

    async with start_lab(make_agent(scripted_server, hooks=[Watcher()])) as lab:
        thread = lab.thread()
        with pytest.raises(NothingToContinue):
            await lab.chat.continue_last_turn(thread)
        await lab.run(thread, "[[say text='first part']]")
        turn = await lab.chat.continue_last_turn(thread)
        result = await turn.result(20)
        assert (result.status, result.text) == ("completed", "first partfirst part")
        messages = await lab.chat.messages(thread)
        assert [(m.role, m.text) for m in messages][1:] == [("assistant", "first partfirst part")]
        assert seen == [False, True]


async def test_a_thread_that_ends_with_a_user_message_has_nothing_to_continue(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.chat.continue_last_turn(lab.thread(), agent="agent")
        result = await turn.result(20)
        assert result.status == "error"
        assert result.error is not None
        assert result.error.type == "NothingToContinue"
