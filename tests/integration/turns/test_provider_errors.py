"""Providers that say no: how often the model is asked, when, and what everybody sees of it."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
import time

import pytest

from everturn import Model
from everturn.activities.scripted.server import ScriptedModelServer
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import make_agent, shown_text

KEY = "sk-very-secret-0123456789abcdef"


async def test_a_rate_limit_is_obeyed_to_the_second(
    start_lab: StartLab, scripted_server: ScriptedModelServer, model: Model
) -> None:
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        turn = await lab.play("rate_limit retry_after=2 times=2 then=ok")
        chunks = await lab.chunks(turn)
        result = await turn.result(10)
        assert (result.status, result.text) == ("completed", "ok")
        times = [record.t_request for record in lab.asked(turn)]
        assert len(times) == 3
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert all(2.0 <= gap < 4.0 for gap in gaps)
        told = [c.data for c in chunks if c.type == "data-retrying"]
        assert [(data["attempt"], data["retryIn"]) for data in told] == [(1, 2.0), (2, 2.0)]
        assert (await turn.info()).attempts_failed == 2


async def test_too_many_tokens_per_minute_is_a_rate_limit_and_no_overflow(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("tokens_per_minute retry_after=1 times=1 then=ok")
        assert (await turn.result(10)).text == "ok"
        assert "data-retrying" in [c.type for c in await lab.chunks(turn)]


async def test_a_provider_that_fails_for_good_is_asked_five_times(
    start_lab: StartLab, scripted_server: ScriptedModelServer, model: Model
) -> None:
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        answers = ["status code=500", "drop", "stream_error"]
        turns = [await lab.play(script) for script in answers]
        results = await asyncio.gather(*(turn.result(60) for turn in turns))
        assert [result.status for result in results] == ["error"] * 3
        assert [len(lab.asked(turn)) for turn in turns] == [5, 5, 5]
        assert [result.error and result.error.type for result in results] == [
            "server_error",
            "connection",
            "stream_error",
        ]
        for turn in turns:
            chunks = await lab.chunks(turn)
            assert [c.data["attempt"] for c in chunks if c.type == "data-retrying"] == [1, 2, 3, 4]
            assert chunks[-1].type == "error"
        failed_last = await lab.chat.messages(turns[0].thread_id)
        assert [m.role for m in failed_last] == ["user"]


@pytest.mark.parametrize(("code", "kind"), [(400, "bad_request"), (401, "authentication"), (404, "model_not_found")])
async def test_a_refused_request_is_not_repeated(
    start_lab: StartLab, scripted_server: ScriptedModelServer, model: Model, code: int, kind: str
) -> None:
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        turn = await lab.play(f"status code={code}")
        result = await turn.result(10)
        assert (result.status, result.stop_reason) == ("error", "error")
        assert result.error is not None
        assert result.error.type == kind
        assert "scripted status" not in result.error.message
        assert len(lab.asked(turn)) == 1
        assert "data-retrying" not in [c.type for c in await lab.chunks(turn)]


async def test_a_connection_dropped_before_the_first_byte_is_tried_again(
    start_lab: StartLab, scripted_server: ScriptedModelServer, model: Model
) -> None:
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        turn = await lab.play("drop times=1 then=ok")
        assert (await turn.result(10)).text == "ok"
        assert len(lab.asked(turn)) == 2


async def test_an_error_inside_the_stream_voids_what_was_said(
    start_lab: StartLab, scripted_server: ScriptedModelServer, model: Model
) -> None:
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        turn = await lab.play("stream_error tokens=3 times=1 then=ok")
        chunks = await lab.chunks(turn)
        assert (shown_text(chunks), (await turn.result(10)).text) == ("ok", "ok")
        assert "w0001" in "".join(c.data["delta"] for c in chunks if c.type == "text-delta")


@pytest.mark.parametrize("in_stream", [0, 1])
async def test_a_context_overflow_is_recognised_and_not_repeated_as_it_is(
    start_lab: StartLab, scripted_server: ScriptedModelServer, model: Model, in_stream: int
) -> None:
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        turn = await lab.play(f"overflow in_stream={in_stream}")
        result = await turn.result(20)
        assert result.status == "error"
        assert result.error is not None
        assert result.error.type == "context_overflow"
        assert len(lab.asked(turn)) == 1


async def test_a_wrong_key_is_named_by_its_variable_and_shown_nowhere(
    start_lab: StartLab,
    scripted_server: ScriptedModelServer,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("LAB_MODEL_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    keyed = dataclasses.replace(model, api_key_env="LAB_MODEL_KEY")
    async with start_lab(make_agent(scripted_server, model=keyed)) as lab:
        turn = await lab.play("key expected=another")
        result = await turn.result(10)
        assert result.error is not None
        assert result.error.type == "authentication"
        assert "openai/scripted" in result.error.message
        assert "LAB_MODEL_KEY" in result.error.message
        assert len(lab.asked(turn)) == 1
        chunks = await lab.chunks(turn)
        assert "LAB_MODEL_KEY" in chunks[-1].data["errorText"]
        shown = [str(chunks), str(await turn.info()), lab.stored_text(), await lab.raw_history(turn), caplog.text]
        assert [KEY in text for text in shown] == [False] * len(shown)
        assert [KEY[3:20] in text for text in shown] == [False] * len(shown)


async def test_a_missing_key_is_named_by_its_variable_without_a_request(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    model = Model("openai/scripted", api_base=scripted_server.base_url, api_key_env="LAB_KEY_THAT_IS_NOT_SET")
    async with start_lab(make_agent(scripted_server, model=model)) as lab:
        turn = await lab.play("ok")
        result = await turn.result(10)
        assert result.error is not None
        assert "LAB_KEY_THAT_IS_NOT_SET" in result.error.message
        assert lab.asked(turn) == []


async def test_a_failed_turn_frees_its_thread_and_a_partial_answer_of_it_is_kept(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server)) as lab:
        turn = await lab.play("overflow in_stream=1 tokens=2")
        started = time.monotonic()
        following = await lab.play("say text=next", turn.thread_id)
        assert (await following.result(20)).text == "next"
        assert time.monotonic() - started < 10
        texts = [(m.role, m.text) for m in await lab.chat.messages(turn.thread_id)]
        assert [role for role, _ in texts] == ["user", "assistant", "user", "assistant"]
        assert texts[1][1].startswith("w0001")
