"""on_chat_error and classify_chat_error."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from everturn import Agent, ChatClient, Model, TurnError
from everturn.activities.models import litellm_module
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.agent import Lane
from tests.integration.hooks.authors import hooks, the_trace, traces
from tests.integration.turns.conftest import LANES, StartLab
from tests.integration.turns.lab import eventually, make_agent

INTERNAL = "scripted status 400"
"""What the scripted provider says when it fails; no message of ours has these words."""


def on_error(answer: Any, name: str = "Friendly", **options: Any) -> Any:
    async def on_chat_error(self: Any, error: Any, ctx: Any) -> Any:
        return answer(error, ctx) if callable(answer) else answer

    return hooks(name, on_chat_error=on_chat_error, **options)


def classifying(answer: Any, name: str = "Classifier", **options: Any) -> Any:
    async def classify_chat_error(self: Any, error: Any, ctx: Any) -> Any:
        return answer(error, ctx) if callable(answer) else answer

    return hooks(name, classify_chat_error=classify_chat_error, **options)


FRIENDLY = [
    (TurnError("sorry", "We are having trouble."), ("sorry", "We are having trouble.")),
    ("We are having trouble.", ("bad_request", "We are having trouble.")),
    (ValueError("We are having trouble."), ("ValueError", "We are having trouble.")),
]


@pytest.mark.parametrize(("answer", "shown"), FRIENDLY, ids=["TurnError", "text", "exception"])
@pytest.mark.parametrize("added", [True, False])
async def test_the_friendly_error_is_all_that_clients_store_and_result_show(
    start_lab: StartLab, scripted_server: ScriptedModelServer, answer: Any, shown: tuple[str, str], added: bool
) -> None:
    calls: list[Any] = []

    def friendly(error: Any, ctx: Any) -> Any:
        calls.append((error, ctx))
        return answer

    async def own(self: Any, error: Any, ctx: Any) -> Any:
        return friendly(error, ctx)

    owner: dict[str, Any] = {"hooks": [on_error(friendly)]}
    if not added:
        owner = {"base": type("Friendly", (Agent,), {"on_chat_error": own})}
    async with start_lab(make_agent(scripted_server, **owner)) as lab:
        turn = await lab.play("status code=400")
        result = await turn.result(15)
        assert result.error == TurnError(*shown)
        chunks = await lab.chunks(turn)
        assert chunks[-1].type == "error"
        assert (chunks[-1].data["type"], chunks[-1].data["errorText"]) == shown
        info = await turn.info()
        assert info.turn.error == TurnError(*shown)
        assert (await (await lab.storeless()).turn(turn.request_id).result(10)).error == TurnError(*shown)

        seen_by_clients = json.dumps([chunk.as_json() for chunk in chunks]) + str(result.as_json())
        assert INTERNAL not in seen_by_clients
        assert INTERNAL in str(the_trace(info, "model_step").message), "the provider's words are in the trace"
        assert INTERNAL not in await lab.raw_history(turn)
        assert the_trace(info, "on_chat_error").changed == ["error"]
        ((error, ctx),) = calls
        assert error.type == "bad_request"
        assert (ctx.stage, ctx.messages_persisted, ctx.classification) == ("stream", True, "fatal")


async def test_several_hooks_hand_the_error_on(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    chain = [
        on_error("First words.", "one"),
        on_error(None, "two"),
        on_error(lambda error, ctx: error.message + " Second words.", "three"),
    ]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        result = await (await lab.play("status code=400")).result(15)
        assert result.error is not None
        assert result.error.message == "First words. Second words."


@pytest.mark.parametrize("added", [True, False])
async def test_a_failing_on_chat_error_is_traced_and_the_original_error_is_shown(
    start_lab: StartLab, scripted_server: ScriptedModelServer, added: bool
) -> None:
    async def broken(self: Any, error: Any, ctx: Any) -> None:
        raise ValueError("broken hook")

    owner: dict[str, Any] = {"hooks": [hooks("Broken", on_chat_error=broken, on_error="raise")]}
    if not added:
        owner = {"base": type("Broken", (Agent,), {"on_chat_error": broken})}
    async with start_lab(make_agent(scripted_server, **owner)) as lab:
        turn = await lab.play("status code=400")
        result = await turn.result(15)
        assert result.error is not None
        assert (result.status, result.error.type) == ("error", "bad_request")
        assert the_trace(await turn.info(), "on_chat_error").outcome == "error"


async def test_the_partial_answer_is_stored_before_the_author_hears_of_the_error(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[Any] = []
    heard: list[Any] = []

    class Reader(Agent):
        chat: ChatClient

        async def on_chat_error(self, error: Any, ctx: Any) -> None:
            seen.extend(await self.chat.messages(ctx.thread_id))

        async def on_chat_response(self, result: Any) -> None:
            heard.append((result.status, result.message.text, len(seen)))

    agent = make_agent(scripted_server, base=Reader, hooks=[classifying("fatal")])
    async with start_lab(agent) as lab:
        agent.chat = lab.chat  # type: ignore[attr-defined]  # Reader's
        turn = await lab.play("stream_error tokens=2")
        result = await turn.result(15)
        assert result.status == "error"
        assert [message.role for message in seen] == ["user", "assistant"]
        assert seen[1].text == "w0001 w0002 "

        async def told() -> bool:
            return bool(heard)

        await eventually(told, "on_chat_response ran", 10)
    assert heard == [("error", "w0001 w0002 ", 2)]


async def test_a_turn_that_fails_before_any_answer_is_for_on_chat_error_alone(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    seen: list[str] = []

    async def on_chat_response(self: Any, result: Any) -> None:
        seen.append("response")

    async def on_turn_end(self: Any, result: Any) -> None:
        seen.append(f"end {result.status} {result.message}")

    watcher = hooks(on_chat_response=on_chat_response, on_turn_end=on_turn_end)
    async with start_lab(make_agent(scripted_server, hooks=[watcher, on_error(None)])) as lab:
        turn = await lab.play("status code=400")
        assert (await turn.result(15)).status == "error"
        await (await lab.play("ok", turn.thread_id)).result(15)
        assert len(traces(await turn.info(), "on_chat_error")) == 1
    assert seen[0] == "end error None"


async def test_a_completed_turn_never_asks_on_chat_error(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[on_error("never")])) as lab:
        turn = await lab.play("rate_limit times=1 retry_after_ms=10")
        assert (await turn.result(15)).status == "completed"
        assert traces(await turn.info(), "on_chat_error") == []


async def test_on_chat_error_may_cancel_the_turn_which_then_ends_aborted(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    class Giving(Agent):
        chat: ChatClient

        async def on_chat_error(self, error: Any, ctx: Any) -> None:
            assert await self.chat.cancel_chat(ctx.request_id) == "cancelled"

    agent = make_agent(scripted_server, base=Giving)
    async with start_lab(agent) as lab:
        agent.chat = lab.chat  # type: ignore[attr-defined]  # Giving's
        turn = await lab.play("status code=400")
        result = await turn.result(15)
        assert (result.status, result.stop_reason, result.error) == ("aborted", "cancelled", None)


@pytest.mark.parametrize("lane", LANES)
async def test_a_classifier_is_given_litellms_exception_or_the_words_of_an_error_in_the_stream(
    start_lab: StartLab, scripted_server: ScriptedModelServer, lane: Lane
) -> None:
    given: list[Any] = []

    def note(error: Any, ctx: Any) -> str:
        given.append(error)
        return "fatal"

    model = Model("openai/scripted", api_base=scripted_server.base_url, lane=lane)
    agent: Agent = type("Judge", (Agent,), {"name": "agent", "model": model, "hooks": (classifying(note),)})()
    async with start_lab(agent) as lab:
        for script in ("rate_limit retry_after=3", "stream_error message='Boiler is off'"):
            assert (await (await lab.play(script)).result(20)).status == "error"
    refused, broken = given
    assert isinstance(refused, litellm_module.load_litellm().RateLimitError)
    assert (refused.status_code, refused.response.status_code) == (429, 429)
    assert isinstance(broken, str)
    assert "Boiler is off" in broken


async def test_a_classifier_that_takes_its_time_keeps_its_step_and_a_cancel_does_not_wait_for_it(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    inside = asyncio.Event()

    async def hang(self: Any, error: Any, ctx: Any) -> None:
        inside.set()
        await asyncio.Event().wait()

    agent = make_agent(scripted_server, hooks=[hooks("Slow", classify_chat_error=hang)])
    async with start_lab(agent) as lab:
        turn = await lab.play("status code=500")
        await asyncio.wait_for(inside.wait(), 15)
        asked = time.monotonic()
        assert await turn.cancel() == "cancelled"
        assert (await turn.result(20)).status == "aborted"
        assert time.monotonic() - asked < 4, "its own limit is 30 s"
        assert len(lab.asked(turn)) == 1


async def test_a_classifier_may_cancel_the_turn_which_is_then_not_retried(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    class Giving(Agent):
        chat: ChatClient

        async def classify_chat_error(self, error: Any, ctx: Any) -> str:
            await self.chat.cancel_chat(ctx.request_id)
            return "transient"

    agent = make_agent(scripted_server, base=Giving)
    async with start_lab(agent) as lab:
        agent.chat = lab.chat  # type: ignore[attr-defined]  # Giving's
        turn = await lab.play("status code=500")
        assert (await turn.result(15)).status == "aborted"
        assert len(lab.asked(turn)) == 1


async def test_a_failure_that_the_author_calls_fatal_is_not_retried(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    shown: list[str | None] = []

    def note(error: Any, ctx: Any) -> None:
        shown.append(ctx.classification)

    chain = [classifying("fatal"), on_error(note)]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        turn = await lab.play("status code=500")
        assert (await turn.result(15)).status == "error"
        assert len(lab.asked(turn)) == 1
        assert shown == ["fatal"]


async def test_a_failure_that_the_author_calls_transient_is_retried(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[classifying("transient")])) as lab:
        turn = await lab.play("status code=400 times=1")
        assert (await turn.result(15)).text == "ok"
        assert len(lab.asked(turn)) == 2
        assert "data-retrying" in [chunk.type for chunk in await lab.chunks(turn)]


@pytest.mark.parametrize("answer", [None, "unknown", "temporary", lambda error, ctx: 1 / 0])
@pytest.mark.parametrize(("script", "requests"), [("status code=400", 1), ("rate_limit times=1 retry_after_ms=10", 2)])
async def test_no_usable_classification_leaves_it_to_the_default_table(
    start_lab: StartLab, scripted_server: ScriptedModelServer, answer: Any, script: str, requests: int
) -> None:
    async with start_lab(make_agent(scripted_server, hooks=[classifying(answer)])) as lab:
        turn = await lab.play(script)
        await turn.result(15)
        assert len(lab.asked(turn)) == requests
        trace = the_trace(await turn.info(), "classify_chat_error")
        if answer == "temporary":
            assert "'temporary' is no classification" in str(trace.message)


async def test_the_first_classification_counts(start_lab: StartLab, scripted_server: ScriptedModelServer) -> None:
    chain = [classifying(None, "one"), classifying("fatal", "two"), classifying("transient", "three")]
    async with start_lab(make_agent(scripted_server, hooks=chain)) as lab:
        turn = await lab.play("status code=500")
        await turn.result(15)
        assert len(lab.asked(turn)) == 1
        asked = traces(await turn.info(), "classify_chat_error")
        assert [(trace.hook, trace.message) for trace in asked] == [
            ("one", None),
            ("two", None),
            ("three", "ignored: the failure counts as fatal already"),
        ]
