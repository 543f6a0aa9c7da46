"""Structured output of a turn."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from everturn import TurnConfig
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.contexts import TurnContext
from tests.integration.hooks.authors import ADD, add, hooks
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, shown_text


class Weather(BaseModel):
    """An output with a model of its own."""

    city: str
    degrees: int


GOOD = '{"city": "Paris", "degrees": 20}'
BAD = '{"city": "Paris", "degrees": "warm"}'


def wanting(output: Any, **fields: Any) -> Any:
    async def before_turn(self: Any, ctx: TurnContext) -> TurnConfig:
        return TurnConfig(output=output, **fields)

    return hooks("Wanting", before_turn=before_turn)


def says(text: str) -> str:
    return f"say text='{text}'"


async def test_an_answer_that_fits_is_the_turns_output_everywhere(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[wanting(Weather)])) as lab:
        turn = await lab.play(says(GOOD))
        result = await turn.result(20)
        assert (result.status, result.output, result.steps) == ("completed", json.loads(GOOD), 1)
        assert result.text == GOOD
        form = lab.asked(turn)[0].body["response_format"]
        assert form["type"] == "json_schema"
        assert form["json_schema"]["schema"]["required"] == ["city", "degrees"]
        assert (await (await lab.storeless()).turn(turn.request_id).result(10)).output == json.loads(GOOD)


async def test_a_plain_schema_works_too_and_falsy_values_are_outputs(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[wanting({"type": "integer"})])) as lab:
        result = await (await lab.play(says("0"))).result(20)
        assert (result.status, result.output) == ("completed", 0)


async def test_an_answer_that_does_not_fit_is_repaired_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[wanting(Weather, max_steps=1)])) as lab:
        turn = await lab.play(f"{says(BAD)} | structured")
        result = await turn.result(20)
        assert result.status == "completed"
        assert Weather.model_validate(result.output)
        first, second = (request.body["messages"] for request in lab.asked(turn))
        assert [message["role"] for message in second] == ["user", "assistant", "user"]
        assert second[1]["content"] == BAD
        assert "degrees" in second[2]["content"]
        assert "corrected JSON" in second[2]["content"]
        assert len(first) == 1

        assert result.text == json.dumps(result.output), "the answer that did not count is no text of the turn"
        assert shown_text(await lab.chunks(turn)) == result.text
        assert result.usage.output_tokens > 0
        assert result.steps == 2

        later = await lab.play("ok", turn.thread_id)
        await later.result(20)
        assert "warm" not in json.dumps(lab.requests(later.thread_id)[-1].body["messages"][1:])


async def test_a_second_misfit_is_the_error_invalid_output(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[wanting(Weather)])) as lab:
        turn = await lab.play(says(BAD))
        result = await turn.result(20)
        assert (result.status, result.output) == ("error", None)
        assert result.error is not None
        assert result.error.type == "invalid_output"
        assert "degrees" in result.error.message
        assert len(lab.asked(turn)) == 2


async def test_tools_are_called_before_the_output_is_due(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server, tools=[add], hooks=[wanting({"type": "string"})])
    async with start_lab(agent) as lab:
        turn = await lab.play(f"tools say='not JSON' {ADD}")
        result = await turn.result(20)
        info = await turn.info()
        assert [call.output for call in info.tool_calls] == [3]
        assert result.error is not None
        assert result.error.type == "invalid_output", "`done: 1 results` is no JSON string"
        assert result.steps == 3


async def test_a_cancelled_answer_is_no_output(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[wanting(Weather)])) as lab:
        turn = await lab.play("stall tokens=2")
        await lab.until(turn, "text-delta")
        await turn.cancel()
        result = await turn.result(20)
        assert (result.status, result.output, result.text) == ("aborted", None, "w0001 w0002 ")
