"""Redact on whole turns: afterwards the pattern is nowhere in the stream, in the prompts, or in the store."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

from temporalio.client import Client

from everturn import Agent, Allow, Hooks, Redact, Store, ToolContext, TurnConfig, tool
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.testing import System, call, running
from everturn.testing.model import Answer, Reply
from everturn.testing.run import TurnRun
from tests.integration.hooks.authors import hooks
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import WAIT, make_agent, scripted

SECRET = "acct-4711-0815"
MARK = "[redacted]"
RAN: list[str] = []


@tool
async def look_up(key: str) -> dict[str, str]:
    """Finds something."""
    RAN.append(key)
    return {f"of {SECRET}": f"the key is {SECRET}"}


@tool
async def fail(key: str) -> str:
    """Fails."""
    raise RuntimeError(f"{key} is not valid")


@tool
async def watch(key: str, ctx: ToolContext) -> AsyncIterator[str]:
    """Reports on the way."""
    ctx.progress({"at": key})
    yield f"half of {key}"
    yield f"all of {key}"


@tool(needs_approval=lambda given: given["key"] == SECRET)
async def use(key: str) -> str:
    """Uses a key."""
    RAN.append(key)
    return "used"


@tool(client=True)
def ask_user(question: str) -> str:
    """Asks the user."""
    raise AssertionError("runs elsewhere")


TOOLS = (look_up, fail, watch, use, ask_user)


def redacting(*more: Hooks, **options: Any) -> Agent:
    """An agent with these tools that redacts."""
    chain = (*more, Redact([r"acct-\d+-\d+"], **options))
    attributes = {"name": "keys", "model": "openai/gpt-4o", "tools": TOOLS, "hooks": chain}
    agent: Agent = type("Keys", (Agent,), attributes)()
    return agent


def stored(store: Store) -> str:
    with sqlite3.connect(store.url.removeprefix("sqlite:///")) as connection:
        return "\n".join(connection.iterdump())


async def is_clean(system: System, run: TurnRun) -> None:
    """The secret is nowhere, not in Temporal's history either."""
    assert SECRET not in str([chunk.data for chunk in run.chunks])
    assert SECRET not in json.dumps(run.prompts)
    assert SECRET not in stored(system.store)
    assert SECRET.encode() not in b"".join(event.SerializeToString() for event in run.history.events)


async def test_nothing_that_the_model_or_a_tool_says_leaves_the_pattern_anywhere(client: Client) -> None:
    RAN.clear()
    script: list[Answer] = [
        Reply(f"Your key {SECRET} is here.", reasoning=f"they want {SECRET}", calls=(call("look_up", key=SECRET),)),
        [
            call("fail", key=SECRET),
            call("watch", key=SECRET),
            call("nobody", key=SECRET),
            call("look_up", wrong=SECRET),
        ],
        f"It was {SECRET}.",
    ]
    async with running(redacting(), model=script, client=client) as system:
        run = await system.run_turn("hello")
        await is_clean(system, run)
    assert RAN == [SECRET], "the tool runs with what the model gave"
    assert run.text == f"Your key {MARK} is here.It was {MARK}."
    calls = run.info.tool_calls
    assert calls[0].input == {"key": MARK}
    assert calls[0].output == {f"of {MARK}": f"the key is {MARK}"}
    assert [c.error for c in calls[1:2]] == [f"RuntimeError: {MARK} is not valid"]
    assert calls[2].output == f"all of {MARK}"
    shown = [chunk.data for chunk in run.chunks if chunk.type == "data-tool-progress"]
    assert [data["value"] for data in shown] == [{"at": MARK}]


async def test_a_person_approves_without_the_pattern_and_the_tool_runs_with_it(client: Client) -> None:
    RAN.clear()
    script: list[Answer] = [call("use", key=SECRET), "Done."]
    async with running(redacting(), model=script, client=client) as system:
        turn = await system.chat.submit("t", "hello", agent="keys")
        async for chunk in turn.stream():
            if chunk.type == "tool-approval-request":
                (pending,) = await system.chat.pending("t")
                assert pending.input == chunk.data["input"] == {"key": MARK}
                await system.chat.approve(turn.request_id, pending.tool_call_id)
        await is_clean(system, await system.finished(turn))
    assert RAN == [SECRET]


async def test_what_a_person_or_a_front_end_sends_is_stored_redacted(client: Client) -> None:
    RAN.clear()
    script: list[Answer] = [[call("use", key=SECRET), call("ask_user", question="Which?")], "Done."]
    async with running(redacting(), model=script, client=client) as system:
        turn = await system.chat.submit("t", "hello", agent="keys")
        async with asyncio.timeout(WAIT):
            while len(waiting := await system.chat.pending("t")) < 2:
                await asyncio.sleep(0.02)
        for pending in waiting:
            if pending.kind == "approval":
                await system.chat.approve(turn.request_id, pending.tool_call_id, {"key": "acct-1-1"})
            else:
                await system.chat.submit_tool_result(turn.request_id, pending.tool_call_id, f"this: {SECRET}")
        run = await system.finished(turn)
        assert RAN == ["acct-1-1"]
        used, asked = run.info.tool_calls
        assert (used.input, asked.output) == ({"key": MARK}, f"this: {MARK}")
        assert SECRET not in stored(system.store)
        assert "acct-1-1" not in stored(system.store)


async def test_hooks_decide_on_what_the_model_gave_and_what_they_change_is_redacted_too(client: Client) -> None:
    RAN.clear()
    seen: list[Any] = []

    def before(self: Any, ctx: Any) -> Allow:
        seen.append(ctx.input)
        return Allow({"key": "acct-9-9"})

    def after(self: Any, ctx: Any) -> None:
        seen.append((ctx.input, ctx.model_input))

    chain = [hooks("Rewriting", before_tool_call=before, after_tool_call=after)]
    async with running(redacting(*chain), model=[call("look_up", key=SECRET), "Done."], client=client) as system:
        run = await system.run_turn("hello")
        await is_clean(system, run)
        assert "acct-9-9" not in stored(system.store)
    assert RAN == ["acct-9-9"]
    assert seen == [{"key": SECRET}, ({"key": MARK}, {"key": MARK})]


async def test_a_turn_that_is_stopped_while_its_tool_runs_leaves_nothing_behind(client: Client) -> None:
    started = asyncio.Event()

    @tool
    async def hang(key: str) -> str:
        """Never ends."""
        started.set()
        await asyncio.Event().wait()
        return key

    agent = redacting()
    agent.tools = (hang,)
    async with running(agent, model=call("hang", key=SECRET), client=client) as system:
        turn = await system.chat.submit("t", "hello", agent="keys")
        await asyncio.wait_for(started.wait(), WAIT)
        assert SECRET in stored(system.store), "what the tool runs with is there while it runs"
        await turn.cancel()
        run = await system.finished(turn)
        assert run.status == "aborted"
        await is_clean(system, run)


async def test_the_users_own_message_stays_as_it_was_sent_unless_it_is_to_be_redacted(client: Client) -> None:
    for covered in (False, True):
        async with running(redacting(user_messages=covered), model="Thanks.", client=client) as system:
            parts = [{"type": "text", "text": f"My key: {SECRET}"}, {"type": "data-form", "data": {"k": [SECRET]}}]
            run = await system.run_turn(parts)
            (message, _) = await system.chat.messages(run.info.turn.thread_id)
            shown = MARK if covered else SECRET
            assert message.parts == [
                {"type": "text", "text": f"My key: {shown}"},
                {"type": "data-form", "data": {"k": [shown]}},
            ]
            assert (SECRET in json.dumps(run.prompts)) is not covered
            assert (SECRET in stored(system.store)) is not covered


async def test_a_message_that_waits_in_the_store_as_a_draft_is_redacted_when_its_turn_begins(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server, hooks=[Redact([r"acct-\d+-\d+"], user_messages=True)])
    async with start_lab(agent, history_previews=False) as lab:
        turn = await lab.submit(lab.thread(), f"[[ok]] {SECRET}")
        assert (await turn.result(WAIT)).text == "ok"
        assert SECRET not in lab.stored_text()
        assert SECRET not in await lab.raw_history(turn)


async def test_messages_that_are_answered_together_are_redacted_each(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    agent = make_agent(scripted_server, hooks=[Redact([r"acct-\d+-\d+"], user_messages=True)])
    async with start_lab(agent) as lab:
        first = await lab.play("text tokens=30 delay_ms=30")
        await lab.until(first, "text-delta")
        merged = [await lab.submit(first.thread_id, f"[[ok]] {SECRET} {n}", policy="merge") for n in range(2)]
        assert [(await turn.result(WAIT)).text for turn in merged] == ["ok", "ok"]
        said = [message.text for message in await lab.chat.messages(first.thread_id) if MARK in message.text]
        assert len(said) == 2
        assert SECRET not in lab.stored_text()


class Suspicious:
    """A transform that cannot check one of the values."""

    def for_stream(self) -> Any:
        return lambda chunk: chunk

    def tool_value(self, value: Any) -> Any:
        if "boom" in str(value):
            raise ValueError("cannot check this")
        return value

    def user_text(self, text: str) -> str:
        if "unreadable" in text:
            raise ValueError("cannot read this")
        return text


async def test_a_value_or_message_that_a_transform_cannot_check_is_kept_from_everybody(
    start_lab: StartLab, scripted_server: ScriptedModelServer
) -> None:
    @tool
    def shout(key: str) -> str:
        """Shouts."""
        return key

    def before_turn(self: Any, ctx: Any) -> TurnConfig:
        return TurnConfig(transforms=["suspicious"])

    agent = make_agent(
        scripted_server,
        tools=[shout],
        hooks=[hooks("Using", before_turn=before_turn)],
        transforms={"suspicious": Suspicious()},
        model=scripted(scripted_server),
    )
    async with start_lab(agent) as lab:
        turn = await lab.play('tools tool=shout args=\'{"key": "boom"}\'')
        await turn.result(WAIT)
        (made,) = (await turn.info()).tool_calls
        assert made.input == {}
        assert made.output == "This value is withheld: it could not be checked."
        traces = [trace for trace in (await turn.info()).hook_traces if trace.point == "transform"]
        assert {trace.message for trace in traces} == {"a value was withheld: ValueError: cannot check this"}
        refused = await lab.run(lab.thread(), "[[ok]] unreadable")
        assert (refused.status, refused.error.type) == ("error", "BadInput")
        assert "unreadable" not in lab.stored_text()
