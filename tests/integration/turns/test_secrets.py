"""Keys of providers and secret headers: used in requests, and nowhere else to be found."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from everturn import Hooks, Model, TurnConfig, tool
from everturn.activities.scripted.ask import Ask
from everturn.activities.scripted.moves import CallPart, Fail, FailInStream, Finish, Move, Say
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.hooks.agent import Lane
from everturn.ids import workflow_id
from tests.integration.turns.conftest import LANES, StartLab
from tests.integration.turns.lab import Lab, make_agent

KEY, HEADER, TURN_HEADER = "plainlookingkey0123456789", "headersecret0123456789", "turnsecret0123456789"
STATUSES = {"tools": "completed", "refused": "error", "unknown": "error", "broken": "error", "too long": "error"}


def moves(ask: Ask) -> Iterator[Move]:
    """Providers that repeat what they were sent."""
    sent = f"key {ask.key}, headers {HEADER} and {TURN_HEADER}"
    match ask.user_text:
        case "tools" if ask.step == 0:
            yield from (CallPart(0, "call_1", "note", '{"text": "a"}'), Finish("tool_calls"))
        case "tools":
            yield from (Say("done"), Finish("stop"))
        case "refused":
            yield Fail(401, f"Incorrect API key provided: {sent}", "invalid_request_error", "invalid_api_key")
        case "unknown":
            yield Fail(400, f"what is {sent}?")
        case "broken":
            yield from (Say("so far"), FailInStream(f"lost {sent}", "server_error", "x"))
        case _:
            yield Fail(400, f"maximum context length is 10 tokens; {sent}", "x", "context_length_exceeded")


@tool
async def note(text: str) -> str:
    """Notes something."""
    return text


class Watching(Hooks):
    """Sets a header for one turn, and writes down what a hook gets to see of an error."""

    def before_turn(self, ctx: Any) -> TurnConfig:
        return TurnConfig(headers={"X-Turn": TURN_HEADER})

    def classify_chat_error(self, error: Exception, ctx: Any) -> str | None:
        ctx.log("seen", {"error": str(error)})
        return None if "context" in str(error) else "fatal"


async def _shown(lab: Lab, turn: Any) -> dict[str, str]:
    described = await lab.client.get_workflow_handle(workflow_id(turn.request_id)).describe()
    return {
        "history": await lab.raw_history(turn),
        "description": str(described.raw_description),
        "stream": str(await lab.chunks(turn)),
        "inspect": str(await turn.info()),
        "result": str(await turn.result(20)),
    }


@pytest.mark.parametrize("lane", LANES)
async def test_keys_and_secret_headers_are_in_requests_and_nowhere_else(
    start_lab: StartLab,
    lane: Lane,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAB_MODEL_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    headers = {"X-Secret": HEADER}
    async with ScriptedModelServer(play=moves) as server:
        model = Model("openai/x", api_base=server.base_url, api_key_env="LAB_MODEL_KEY", headers=headers, lane=lane)
        async with start_lab(make_agent(server, model=model, tools=[note], hooks=[Watching()])) as lab:
            turns = {text: await lab.submit(lab.thread(), text) for text in STATUSES}
            assert {text: (await turn.result(30)).status for text, turn in turns.items()} == STATUSES
            asked = server.requests[0].headers
            assert (asked["x-secret"], asked["x-turn"]) == (HEADER, TURN_HEADER)
            shown = {
                f"{name} of {text}": said
                for text, turn in turns.items()
                for name, said in (await _shown(lab, turn)).items()
            }
            stored = lab.stored_text()
    shown["logs"], shown["output"] = caplog.text, "".join(capfd.readouterr())
    assert [place for place, said in shown.items() if any(s in said for s in (KEY, HEADER, TURN_HEADER))] == []
    assert [secret for secret in (KEY, HEADER) if secret in stored] == []
    assert "[secret]" in stored
