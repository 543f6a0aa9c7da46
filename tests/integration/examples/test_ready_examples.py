"""The examples of docs/ready-hooks.md, run as they stand."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Any

import pytest
from temporalio.client import Client

from everturn import Principal
from everturn.testing import ModelError, System, call
from everturn.testing.model import Answer
from tests.integration.examples.playing import ROOT, Check, examples_in, play, unmentioned

EXAMPLES = ROOT / "examples" / "ready"
DOCS = ROOT / "docs" / "ready-hooks.md"


async def approve(system: System, example: ModuleType) -> None:
    turn = await system.chat.submit("t", "Pay Ada", agent="bank")
    async for chunk in turn.stream():
        if chunk.type == "tool-approval-request":
            assert chunk.data["reason"] == "Money leaves the account."
            await system.chat.approve(turn.request_id, chunk.data["toolCallId"])
    run = await system.finished(turn)
    assert run.info.tool_calls[0].output == "sent 20 to Ada"


async def budget(system: System, example: ModuleType) -> None:
    ada = Principal("ada")
    answers = [await system.run_turn("hello", principal=ada) for _ in range(3)]
    assert [run.status for run in answers] == ["completed", "completed", "blocked"]
    assert answers[2].text == "That was all for today."
    assert (await system.run_turn("hello", principal=Principal("ben"))).status == "completed"


async def fallback(system: System, example: ModuleType) -> None:
    run = await system.run_turn("hello")
    assert [prompt["model"] for prompt in run.prompts][1:] == ["gpt-4o", "gpt-4o-mini"]
    assert run.info.steps[0].model == "openai/gpt-4o-mini"


async def grounding(system: System, example: ModuleType) -> None:
    run = await system.run_turn("Can I return this?")
    system_prompt = run.prompts[0]["messages"][0]["content"]
    assert system_prompt == "You answer for a shop.\n\nFrom the handbook:\n\nGoods can be returned within 30 days."


async def read_only(system: System, example: ModuleType) -> None:
    run = await system.run_turn("Cancel my order")
    assert [made.state for made in run.info.tool_calls] == ["done", "blocked"]


async def redact(system: System, example: ModuleType) -> None:
    run = await system.run_turn("Charge my card")
    assert example.CHARGED == ["4111 1111 1111 1111"]
    assert run.info.tool_calls[0].input == {"card": "[card]", "amount": 5}
    assert run.text == "Charged [card]."


async def telemetry(system: System, example: ModuleType) -> None:
    told: list[Any] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(getattr(record, "facts", {}))

    logger, keeping = logging.getLogger("everturn.events"), Keeping(logging.INFO)
    level = logger.level
    logger.addHandler(keeping)
    logger.setLevel(logging.INFO)
    try:
        await system.run_turn("hello")
        await system.run_turn("hello", tenant_id="acme")
    finally:
        logger.removeHandler(keeping)
        logger.setLevel(level)
    assert [(facts["function_id"], facts["attributes"]) for facts in told] == [("support-chat", {"tenant": "acme"})]


async def client_tools(system: System, example: ModuleType) -> None:
    assert await example.ask(system.chat, "Where is Paris?") == "There."
    (made,) = (await system.chat.inspect((await system.chat.list_turns())[0].request_id)).tool_calls
    assert made.output == {"shown": "Paris"}


CARD = "4111 1111 1111 1111"
CASES: list[tuple[Check, list[Answer]]] = [
    (approve, [call("send_money", to="Ada", amount=20), "Sent."]),
    (budget, ["Hello."]),
    (fallback, [ModelError(429), ModelError(429), "Hello."]),
    (grounding, ["Yes."]),
    (read_only, [[call("show_order", number=1), call("cancel_order", number=1)], "I cannot."]),
    (redact, [call("charge", card=CARD, amount=5), f"Charged {CARD}."]),
    (telemetry, ["Hello."]),
    (client_tools, [call("show_map", place="Paris"), "There."]),
]


@pytest.mark.parametrize(("check", "script"), CASES, ids=[check.__name__ for check, _ in CASES])
async def test_the_example_does_what_it_says(client: Client, check: Check, script: list[Answer]) -> None:
    await play(client, EXAMPLES, check, script)


def test_every_example_has_a_test_and_a_place_in_the_page() -> None:
    names = examples_in(EXAMPLES)
    assert names == {check.__name__ for check, _ in CASES}
    assert unmentioned(EXAMPLES, DOCS) == []
