"""The examples of docs/hooks.md, run as they stand."""

from __future__ import annotations

from types import ModuleType

import pytest
from temporalio.client import Client

from everturn import Principal
from everturn.hooks.points import HOOK_POINTS
from everturn.testing import ModelError, System, call
from everturn.testing.model import Answer
from tests.integration.examples.playing import ROOT, Check, examples_in, play, unmentioned

EXAMPLES = ROOT / "examples" / "hooks"
DOCS = ROOT / "docs" / "hooks.md"


async def configure_session(system: System, example: ModuleType) -> None:
    run = await system.run_turn("A book?", tenant_id="city")
    prompt = run.prompts[0]["messages"][0]["content"]
    assert "You are a librarian." in prompt
    assert "Never recommend a book that is lent out." in prompt
    assert "Tenant city: open from 9 to 17." in prompt


async def before_turn(system: System, example: ModuleType) -> None:
    refused = await system.run_turn("My balance?", principal=Principal(is_anonymous=True))
    assert (refused.status, refused.text, refused.prompts) == ("blocked", "Please sign in first.", [])
    premium = await system.run_turn("My balance?", principal=Principal("u1", roles=("premium",)))
    assert premium.prompts[0]["model"] == "gpt-4o"
    assert premium.hooks("before_turn")[0].changed == ["max_steps", "model"]
    assert (await system.run_turn("My balance?")).prompts[0]["model"] == "gpt-4o-mini"


async def before_step(system: System, example: ModuleType) -> None:
    run = await system.run_turn("What do you know?")
    assert [prompt.get("tool_choice") for prompt in run.prompts] == [None, None, "none"]
    assert run.hooks("before_step")[2].logs[0]["data"] == {"found": 2}


async def on_chunk(system: System, example: ModuleType) -> None:
    run = await system.run_turn("A poem")
    (trace,) = run.hooks("on_chunk")
    assert trace.logs[0]["data"] == {"characters": len("Roses are red.")}


async def before_tool_call(system: System, example: ModuleType) -> None:
    turn = await system.chat.submit("t", "refunds", agent="cashier")
    async for chunk in turn.stream():
        if chunk.type == "tool-approval-request":
            (waiting,) = await system.chat.pending("t")
            assert waiting.reason == "Refund 500.00?"
            await system.chat.deny(turn.request_id, waiting.tool_call_id, "too much")
    run = await system.finished(turn)
    assert [(c.state, c.output) for c in run.info.tool_calls] == [
        ("done", "refunded 100 for A1"),
        ("blocked", "An amount must be positive."),
        ("substituted", "pretended to refund 100"),
        ("denied", None),
    ]


async def after_tool_call(system: System, example: ModuleType) -> None:
    run = await system.run_turn("Who is ada@example.com?")
    assert "(hidden)" in run.prompts[1]["messages"][-1]["content"]
    assert "DE02" not in str([run.prompts, run.chunks])


async def on_step_finish(system: System, example: ModuleType) -> None:
    run = await system.run_turn("hello")
    (line,) = run.hooks("on_step_finish")[0].logs
    assert line["message"] == "step 0: stop"
    assert line["data"]["tokens"] > 0
    assert line["data"]["cost"] > 0


async def on_chat_response(system: System, example: ModuleType) -> None:
    await system.run_turn("hello")
    assert list(example.OUTBOX.values()) == ["Dear reader."]


async def on_chat_error(system: System, example: ModuleType) -> None:
    run = await system.run_turn("hello")
    assert run.result.error is not None
    assert run.result.error.type == "model_unavailable"
    assert run.hooks("on_chat_error")[0].logs[0]["data"]["stage"] == "stream"


async def classify_chat_error(system: System, example: ModuleType) -> None:
    run = await system.run_turn("hello")
    assert (run.status, len(run.prompts)) == ("error", 1)


async def on_turn_end(system: System, example: ModuleType) -> None:
    await system.run_turn("hello")
    await system.run_turn("hello", body={"closed": True})
    assert dict(example.ENDINGS) == {"completed/end_turn": 1, "blocked/blocked": 1}


async def added(system: System, example: ModuleType) -> None:
    run = await system.run_turn("delete a.txt", principal=Principal("sam"))
    assert run.prompts[0]["messages"][0]["content"] == "You keep files. Address the user as sam."
    assert run.info.tool_calls[0].state == "blocked"
    allowed = await system.run_turn("delete a.txt", principal=Principal("root", roles=("admin",)))
    assert allowed.info.tool_calls[0].output == "deleted a.txt"


REFUNDS: list[Answer] = [
    [
        call("refund", order_id="a1", amount=100),
        call("refund", order_id="a2", amount=-5),
        call("refund", order_id="test-1", amount=100),
        call("refund", order_id="a3", amount=500_00),
    ],
    "Done.",
]
CASES: list[tuple[Check, list[Answer]]] = [
    (configure_session, ["This one."]),
    (before_turn, ["100."]),
    (before_step, [call("search", query="tea"), call("search", query="cups"), "This."]),
    (on_chunk, ["Roses are red."]),
    (before_tool_call, REFUNDS),
    (after_tool_call, [call("find_customer", email="ada@example.com"), "It is Ada."]),
    (on_step_finish, ["Hello."]),
    (on_chat_response, ["Dear reader."]),
    (on_chat_error, [ModelError(400)]),
    (classify_chat_error, [ModelError(503, "under maintenance until 12:00"), "never asked for"]),
    (on_turn_end, ["Hello."]),
    (added, [call("delete_file", name="a.txt"), "Done."]),
]


@pytest.mark.parametrize(("check", "script"), CASES, ids=[check.__name__ for check, _ in CASES])
async def test_the_example_does_what_it_says(client: Client, check: Check, script: list[Answer]) -> None:
    await play(client, EXAMPLES, check, script)


def test_every_point_has_an_example_and_every_example_a_test_and_a_place_in_the_page() -> None:
    names = examples_in(EXAMPLES)
    assert names == {*HOOK_POINTS, "configure_session", "added"} == {check.__name__ for check, _ in CASES}
    assert unmentioned(EXAMPLES, DOCS) == []
