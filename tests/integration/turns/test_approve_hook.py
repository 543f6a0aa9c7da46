"""The ready-made hook that asks for approval."""

from __future__ import annotations

import pytest

from everturn import Approve, tool
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, make_agent
from tests.integration.turns.test_waiting import call, waiting


@tool
async def send_mail(to: str) -> str:
    """Sends a mail."""
    return f"sent to {to}"


@tool
async def read_mail(to: str) -> str:
    """Reads a mail."""
    return f"read of {to}"


async def test_only_matching_tools_wait_for_approval(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    agent = make_agent(scripted_server, tools=[send_mail, read_mail], hooks=[Approve({"send_*"}, "mails cost trust")])
    async with start_lab(agent) as lab:
        assert (await lab.run(lab.thread(), call("read_mail", to="me"))).status == "completed"
        turn = await lab.submit(lab.thread(), call("send_mail", to="you"))
        (pending,) = await waiting(lab, turn)
        assert (pending.tool_name, pending.reason) == ("send_mail", "mails cost trust")
        assert await lab.chat.approve(turn.request_id, pending.tool_call_id) == "accepted"
        assert (await turn.result(WAIT)).status == "completed"


@pytest.mark.parametrize("patterns", ["send_*", set()])
def test_patterns_that_cannot_be_meant_are_refused(patterns: object) -> None:
    with pytest.raises(ValueError, match="patterns"):
        Approve(patterns)  # type: ignore[arg-type]
