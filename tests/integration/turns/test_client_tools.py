"""Client tools that come with a request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from everturn import BadInput, PendingCall, RequestConflict, Turn, TurnConfig
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.hooks.authors import add, hooks
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, Lab, make_agent

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SHOW_MAP = {"name": "show_map", "description": "Shows a map.", "schema": SCHEMA}


def calls(arguments: dict[str, Any], name: str = "show_map", count: int = 1) -> str:
    return f"tools calls={count} tool={name} args='{json.dumps(arguments)}'"


def offered(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", [])]


async def the_pending(lab: Lab, turn: Turn) -> PendingCall:
    async with asyncio.timeout(WAIT):
        while not (found := await lab.chat.pending(turn.thread_id)):
            await asyncio.sleep(0.02)
    return found[0]


async def test_a_tool_of_the_request_is_offered_in_each_step_of_its_turn_and_run_by_the_caller(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[add])) as lab:
        turn = await lab.play(calls({"city": "Paris"}), client_tools=[SHOW_MAP])
        pending = await the_pending(lab, turn)
        assert (pending.kind, pending.tool_name, pending.input) == ("client_tool", "show_map", {"city": "Paris"})
        await lab.chat.submit_tool_result(turn.request_id, pending.tool_call_id, {"shown": True})
        assert (await turn.result(WAIT)).text == "done: 1 results"
        later = await lab.submit(turn.thread_id, "[[ok]]")
        await later.result(WAIT)
        first, second, third = lab.asked(turn)
        assert first.body["tools"][1]["function"] == {
            "name": "show_map",
            "description": "Shows a map.",
            "parameters": SCHEMA,
        }
        assert [offered(request.body) for request in (first, second, third)] == [
            ["add", "show_map"],
            ["add", "show_map"],
            ["add"],
        ]
        assert json.loads(second.body["messages"][-1]["content"]) == {"shown": True}


async def test_arguments_that_do_not_fit_the_requests_schema_never_reach_the_caller(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play(calls({"town": "Paris"}), client_tools=[SHOW_MAP])
        assert (await turn.result(WAIT)).status == "completed"
        (call,) = (await turn.info()).tool_calls
        assert call.state == "error"
        assert "'city' is a required property" in str(call.error)


async def test_hooks_see_the_tools_of_the_request_and_may_take_them_away(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[Any] = []

    async def before_turn(self: Any, ctx: Any) -> TurnConfig:
        seen.append(ctx.tools["show_map"].schema)
        return TurnConfig(active_tools=["add"])

    agent = make_agent(scripted_server, tools=[add], hooks=[hooks(before_turn=before_turn)])
    async with start_lab(agent) as lab:
        turn = await lab.play("ok", client_tools=[SHOW_MAP])
        await turn.result(WAIT)
        assert seen == [SCHEMA]
        assert offered(lab.asked(turn)[0].body) == ["add"]


async def test_a_tool_with_the_name_of_one_of_the_agents_is_refused_before_the_model_is_asked(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[add])) as lab:
        turn = await lab.play("ok", client_tools=[{**SHOW_MAP, "name": "add"}])
        result = await turn.result(WAIT)
        assert result.status == "error"
        assert result.error is not None
        assert result.error.type == "BadInput"
        assert "'add'" in result.error.message
        assert "agent 'agent' has a tool of that name" in result.error.message
        assert lab.asked(turn) == []
        assert (await lab.run(turn.thread_id, "[[ok]]")).status == "completed"


async def test_the_same_request_with_other_client_tools_is_another_request(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        thread = lab.thread()
        turn = await lab.submit(thread, "[[ok]]", request_id=f"{thread}-r", client_tools=[SHOW_MAP])
        again = await lab.submit(thread, "[[ok]]", request_id=f"{thread}-r", client_tools=[SHOW_MAP])
        assert (turn.accepted, again.accepted) == (True, False)
        with pytest.raises(RequestConflict):
            await lab.submit(thread, "[[ok]]", request_id=f"{thread}-r")
        with pytest.raises(BadInput, match="two tools named"):
            await lab.submit(thread, "[[ok]]", client_tools=[SHOW_MAP, SHOW_MAP])
        await turn.result(WAIT)


async def test_a_continued_turn_may_bring_client_tools_too(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("ok")
        await turn.result(WAIT)
        more = await lab.chat.continue_last_turn(turn.thread_id, client_tools=[SHOW_MAP])
        await more.result(WAIT)
        assert [offered(request.body) for request in lab.asked(turn)] == [[], ["show_map"]]


async def test_a_front_end_may_answer_as_soon_as_it_sees_the_call(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    sent = asyncio.Event()

    async def before_tool_call(self: Any, ctx: Any) -> None:
        await asyncio.wait_for(sent.wait(), WAIT)
        await asyncio.sleep(0.3)  # the answer arrives while the workflow is not waiting for it

    agent = make_agent(scripted_server, hooks=[hooks(before_tool_call=before_tool_call)])
    async with start_lab(agent) as lab:
        turn = await lab.play(calls({"city": "Paris"}), client_tools=[SHOW_MAP])
        chunk = await lab.until(turn, "tool-input-available")
        answering = asyncio.ensure_future(
            lab.chat.submit_tool_result(turn.request_id, chunk.data["toolCallId"], {"shown": True})
        )
        sent.set()
        assert await answering == "accepted"
        assert (await turn.result(WAIT)).text == "done: 1 results"
