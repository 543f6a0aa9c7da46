"""What a model's stream can do to a turn: ends, cuts, odd shapes, silence, filters."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Model, tool
from everturn.activities.scripted.scenarios.oddities import ODD_TEXT
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, shown_text

RAN: list[str] = []


@tool
async def look_up(city: str) -> str:
    """Looks a city up."""
    RAN.append(city)
    return f"facts about {city}"


@pytest.mark.parametrize("how", ["eof", "done", "fin", "reset"])
async def test_a_stream_that_ends_without_a_finish_reason_is_voided_and_asked_again(
    start_lab: StartLab, scripted_server: ScriptedModelServer, model: Model, how: str
) -> None:
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        turn = await lab.play(f"cut how={how} tokens=3 times=1 then=ok")
        chunks = await lab.chunks(turn)
        result = await turn.result(10)
        assert (result.status, result.text) == ("completed", "ok")
        said = [c for c in chunks if c.type == "text-delta"]
        assert said[0].data["delta"].startswith("w0001")
        voided = next(c for c in chunks if c.type == "data-reset")
        assert (voided.data["step"], voided.data["attempt"]) == (0, 1)
        assert all(c.attempt == 2 for c in said if c.seq > voided.seq)
        assert shown_text(chunks) == "ok"
        assert len(lab.asked(turn)) == 2
        assert [m.text for m in await lab.chat.messages(turn.thread_id)][1:] == ["ok"]


@pytest.mark.parametrize("how", ["eof", "reset"])
async def test_a_call_that_is_cut_by_the_end_of_the_stream_never_runs(
    start_lab: StartLab, scripted_server: ScriptedModelServer, how: str
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[look_up])) as lab:
        RAN.clear()
        turn = await lab.play(f"cut how={how} inside=call tool=look_up times=1 then=ok")
        result = await turn.result(20)
        assert (result.status, result.text) == ("completed", "ok")
        assert (RAN, (await turn.info()).tool_calls) == ([], [])


@pytest.mark.parametrize("finish", ["length", "tool_calls"])
async def test_a_batch_with_broken_arguments_is_answered_with_errors_and_no_repaired_json_runs(
    start_lab: StartLab, scripted_server: ScriptedModelServer, finish: str
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[look_up])) as lab:
        RAN.clear()
        turn = await lab.play(f"bad_json finish={finish} good=0")
        result = await turn.result(20)
        assert (result.status, result.text) == ("completed", "done: 1 results")
        (call,) = (await turn.info()).tool_calls
        assert (call.state, RAN) == ("error", [])
        wanted = "cut off by the output limit" if finish == "length" else "not a JSON object"
        assert wanted in (call.error or "")
        told = [m for m in lab.asked(turn)[-1].body["messages"] if m["role"] == "tool"]
        assert wanted in told[0]["content"]


async def test_no_call_of_a_batch_that_the_output_limit_cut_runs(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[look_up], max_output_tokens=64)) as lab:
        RAN.clear()
        turn = await lab.play("bad_json finish=tool_calls good=2 hit_limit=1")
        assert (await turn.result(20)).status == "completed"
        assert [call.state for call in (await turn.info()).tool_calls] == ["error"] * 3
        assert RAN == []


@pytest.mark.parametrize("shape", ["index0", "index0_pieces", "one_chunk", "interleaved", "same_id", "no_id", "plain"])
async def test_parallel_calls_are_kept_apart_whatever_their_shape(
    start_lab: StartLab, scripted_server: ScriptedModelServer, shape: str
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[look_up])) as lab:
        RAN.clear()
        turn = await lab.play(f'tools calls=3 shape={shape} args=\'{{"city": "Köln"}}\'')
        result = await turn.result(20)
        assert (result.status, result.text) == ("completed", "done: 3 results")
        calls = (await turn.info()).tool_calls
        assert [call.output for call in calls] == ["facts about Köln"] * 3
        assert len({call.tool_call_id for call in calls}) == 3
        assert RAN == ["Köln"] * 3


@pytest.mark.parametrize("finish", ["stop", "banana"])
async def test_complete_calls_run_whatever_the_finish_reason_says(
    start_lab: StartLab, scripted_server: ScriptedModelServer, finish: str
) -> None:
    async with start_lab(make_agent(scripted_server, tools=[look_up])) as lab:
        turn = await lab.play(f'tools finish={finish} args=\'{{"city": "Rome"}}\'')
        result = await turn.result(20)
        assert (result.text, result.steps) == ("done: 1 results", 2)


async def test_an_unknown_finish_reason_after_text_ends_the_turn(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("say text=fine finish=banana")
        result = await turn.result(20)
        assert (result.status, result.stop_reason, result.text) == ("completed", "end_turn", "fine")


@pytest.mark.parametrize("kind", ["empty_choices", "null_delta", "after_finish", "comments", "split_utf8", "crlf"])
async def test_odd_but_correct_streams_lose_nothing(
    start_lab: StartLab, scripted_server: ScriptedModelServer, kind: str
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play(f"odd kind={kind}")
        chunks = await lab.chunks(turn)
        assert shown_text(chunks) == ODD_TEXT
        assert (await turn.result(10)).text == ODD_TEXT
        assert len(lab.asked(turn)) == 1


@pytest.mark.parametrize(
    ("script", "limits", "code"),
    [
        ("stall kind=comments", {"first_token_timeout": 0.4}, "first_token_timeout"),
        ("stall kind=nothing", {"first_token_timeout": 0.4}, "first_token_timeout"),
        ("stall kind=empty tokens=2", {"chat_stream_stall_timeout": 0.4}, "stalled"),
        ("stall kind=silence tokens=2", {"chat_stream_stall_timeout": 0.4}, "stalled"),
        ("stall kind=drip", {"step_timeout": 0.7}, "total_timeout"),
    ],
)
async def test_own_deadlines_end_a_stream_that_never_ends(
    start_lab: StartLab,
    scripted_server: ScriptedModelServer,
    script: str,
    limits: dict[str, Any],
    code: str,
) -> None:
    async with start_lab(make_agent(scripted_server, **limits)) as lab:
        turn = await lab.play(f"{script} times=1 then=ok")
        chunks = await lab.chunks(turn)
        result = await turn.result(10)
        assert (result.status, result.text, shown_text(chunks)) == ("completed", "ok", "ok")
        first, second = lab.asked(turn)
        assert first.client_closed
        assert first.t_closed is not None
        assert first.t_closed <= second.t_request
        info = await turn.info()
        assert info.attempts_failed == 1
        assert code in str(info.hook_traces[0].logs)


async def test_a_model_that_repeats_one_chunk_for_ever_is_cut_off(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("repeat count=4000 delay_ms=1 times=1 then=ok")
        chunks = await lab.chunks(turn)
        assert shown_text(chunks) == "ok"
        first, _ = lab.asked(turn)
        assert first.client_closed
        assert "again" not in (await turn.result(10)).text


async def test_an_empty_answer_is_asked_for_again_once(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("empty times=1 then=ok")
        result = await turn.result(10)
        assert (result.status, result.text) == ("completed", "ok")
        assert len(lab.asked(turn)) == 2


async def test_a_model_that_answers_nothing_fails_the_turn_and_old_text_is_never_its_answer(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        first = await lab.play("say text='an old answer'")
        await first.result(10)
        turn = await lab.play("empty", first.thread_id)
        result = await turn.result(10)
        assert (result.status, result.text, result.message) == ("error", "", None)
        assert result.error is not None
        assert result.error.type == "empty_response"
        assert len(lab.asked(turn)) == 1 + 2
        assert [m.role for m in await lab.chat.messages(turn.thread_id)] == ["user", "assistant", "user"]
        again = await lab.play("say text='a new answer'", first.thread_id)
        assert (await again.result(10)).text == "a new answer"


async def test_a_refusal_is_a_visible_answer(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("refusal")
        chunks = await lab.chunks(turn)
        assert shown_text(chunks) == "I can't help with that."
        result = await turn.result(10)
        assert (result.status, result.text) == ("completed", "I can't help with that.")
        assert len(lab.asked(turn)) == 1


@pytest.mark.parametrize(
    ("said", "shown"), [("''", "The model declined to answer this request."), ("'so far'", "so far")]
)
async def test_a_content_filter_ends_the_turn_visibly_and_keeps_its_finish_reason(
    start_lab: StartLab, scripted_server: ScriptedModelServer, said: str, shown: str
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play(f"content_filter text={said}")
        chunks = await lab.chunks(turn)
        result = await turn.result(10)
        assert (result.status, result.text, shown_text(chunks)) == ("completed", shown, shown)
        assert [step.finish_reason for step in (await turn.info()).steps] == ["content_filter"]
        assert next(c for c in chunks if c.type == "finish-step").data["finishReason"] == "content_filter"
