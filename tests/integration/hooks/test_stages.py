"""A turn fails in each of its stages, over a fault that is really there: on_chat_error hears of it once, with the facts
that the store and the log have too."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from temporalio.client import WorkflowFailureError

from everturn import Agent, Turn, TurnError
from everturn.activities.payloads import WORKFLOW, TurnInput
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import new_request_id, workflow_id
from tests.integration.hooks.authors import traces
from tests.integration.turns.conftest import StartLab
from tests.integration.turns.lab import Lab, make_agent
from tests.integration.turns.test_events import facts

Seen = list[tuple[Any, ...]]
Submit = Callable[[Lab], Awaitable[Turn]]


@dataclass(frozen=True)
class Fault:
    """submit: injects the fault and submits the turn that meets it. mended_by: SQL. shown: type of the error.
    messages: what the thread has of the turn afterwards."""

    stage: str
    submit: Submit
    shown: str
    persisted: bool
    messages: int
    mended_by: str = ""
    recorded: bool = True


def sql(lab: Lab, statement: str) -> Any:
    """The first row, if there is one."""
    with sqlite3.connect(lab.store_url.removeprefix("sqlite:///"), timeout=10) as connection:
        return connection.execute(statement).fetchone()


def refusing(table: str, when: str = "1") -> str:
    """The database says no, as it does over a constraint or a right that is missing."""
    return f"CREATE TRIGGER strike BEFORE INSERT ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, 'out on strike'); END"


async def start(lab: Lab, thread: str, **changed: Any) -> Turn:
    """What a client of another version might send: it goes to Temporal as it is."""
    asked = TurnInput(
        new_request_id(), thread, "agent", "digest", [{"type": "text", "text": "[[ok]]"}], body={"ticket": 7}
    )
    given = replace(asked, **changed)
    await lab.client.start_workflow(WORKFLOW, given, id=workflow_id(given.request_id), task_queue=lab.task_queue)
    return lab.chat.turn(given.request_id)


async def strange_parts(lab: Lab) -> Turn:
    return await start(lab, "thread", parts=[{"type": "hologram", "url": 5}])


async def strange_principal(lab: Lab) -> Turn:
    return await start(lab, "thread", principal={"id": "u1", "clearance": "high"})


async def strange_trigger(lab: Lab) -> Turn:
    return await start(lab, "thread", trigger="premonition")


async def strange_policy(lab: Lab) -> Turn:
    return await start(lab, "thread", policy="whenever")


async def lost_draft(lab: Lab) -> Turn:
    return await start(lab, "thread", parts=None)


async def refused_message(lab: Lab) -> Turn:
    sql(lab, refusing("messages", "NEW.role = 'user'"))
    return await lab.play("ok", "thread")


async def refused_turn(lab: Lab) -> Turn:
    sql(lab, refusing("turns"))
    return await start(lab, "thread")


async def failing_hook(lab: Lab) -> Turn:
    return await lab.play("ok", "thread", body={"ticket": 7, "fail": True})


async def failing_model(lab: Lab) -> Turn:
    return await lab.play("status code=400", "thread", body={"ticket": 7})


async def damaged_transcript(lab: Lab) -> Turn:
    assert (await (await lab.play("ok", "thread")).result(20)).ok
    sql(lab, "UPDATE messages SET parts = '[{\"type\": \"te' WHERE role = 'assistant'")
    return await lab.play("ok", "thread", body={"ticket": 7})


async def foreign_transcript(lab: Lab) -> Turn:
    assert (await (await lab.play("ok", "thread")).result(20)).ok
    sql(lab, "UPDATE messages SET parts = '[{\"type\": \"file\"}]' WHERE role = 'user'")
    return await lab.play("ok", "thread", body={"ticket": 7})


async def refused_answer(lab: Lab) -> Turn:
    sql(lab, refusing("messages", "NEW.role = 'assistant'"))
    return await lab.play("ok", "thread", body={"ticket": 7})


OFF_STRIKE = "DROP TRIGGER strike"
GONE = "DELETE FROM messages"
FAULTS: dict[str, Fault] = {
    "parse, parts": Fault("parse", strange_parts, "BadInput", False, 0),
    "parse, principal": Fault("parse", strange_principal, "BadInput", False, 0),
    "parse, trigger": Fault("parse", strange_trigger, "BadInput", False, 0),
    "parse, policy": Fault("parse", strange_policy, "BadInput", False, 0),
    "parse, no message": Fault("parse", lost_draft, "BadInput", False, 0),
    "persist": Fault("persist", refused_message, "StoreRefused", False, 0, OFF_STRIKE),
    "persist, not recorded": Fault("persist", refused_turn, "StoreRefused", False, 0, OFF_STRIKE, recorded=False),
    "turn": Fault("turn", failing_hook, "HookFailed", True, 1),
    "stream": Fault("stream", failing_model, "bad_request", True, 1),
    "transcript, damaged": Fault("transcript", damaged_transcript, "TranscriptDamaged", True, 1, GONE),
    "transcript, foreign": Fault("transcript", foreign_transcript, "TranscriptDamaged", True, 1, GONE),
    "transcript, answer": Fault("transcript", refused_answer, "StoreRefused", True, 1, OFF_STRIKE),
}


def watching(server: ScriptedModelServer, errors: Seen, ends: Seen, *, before_turn: bool) -> Agent:
    async def check(self: Any, ctx: Any) -> None:
        if (ctx.body or {}).get("fail"):
            raise ValueError("broken hook")

    async def on_chat_error(self: Any, error: TurnError, ctx: Any) -> str:
        errors.append((ctx.request_id, ctx.stage, ctx.messages_persisted, error.type))
        return "Sorry."

    async def on_turn_end(self: Any, result: Any) -> None:
        ends.append((result.request_id, result.status, result.error and result.error.message))

    methods: dict[str, Any] = {"on_chat_error": on_chat_error, "on_turn_end": on_turn_end}
    if before_turn:
        methods["before_turn"] = check
    return make_agent(server, base=type("Watching", (Agent,), methods))


async def over(lab: Lab, turn: Turn) -> None:
    """Until the workflow has ended, its last hook included."""
    handle = lab.client.get_workflow_handle(turn.workflow_id)
    async with asyncio.timeout(30):
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
    assert "Sorry" in str(caught.value.cause)


@pytest.mark.parametrize("name", FAULTS)
async def test_a_turn_that_fails_in_any_stage_is_told_of_once_with_its_facts(
    start_lab: StartLab, scripted_server: ScriptedModelServer, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    fault, errors, ends = FAULTS[name], cast(Seen, []), cast(Seen, [])
    async with start_lab(watching(scripted_server, errors, ends, before_turn=name == "turn")) as lab:
        with caplog.at_level(logging.WARNING, "everturn.events"):
            turn = await fault.submit(lab)
            await over(lab, turn)
        mine = [seen for seen in errors if seen[0] == turn.request_id]
        assert mine == [(turn.request_id, fault.stage, fault.persisted, fault.shown)]
        assert [seen for seen in ends if seen[0] == turn.request_id] == [(turn.request_id, "error", "Sorry.")]
        (event,) = facts(caplog, "chat:request:failed")
        assert (event["stage"], event["messages_persisted"]) == (fault.stage, fault.persisted)
        assert (event["request_id"], event["thread_id"]) == (turn.request_id, "thread")

        (stored,) = sql(lab, f"SELECT count(*) FROM messages WHERE request_id = '{turn.request_id}'")
        assert stored == fault.messages
        if fault.recorded:
            result = await turn.result(10)
            assert (result.status, result.error and result.error.message) == ("error", "Sorry.")
            assert (await lab.chunks(turn))[-1].data["errorText"] == "Sorry."
            assert len(traces(await turn.info(), "on_chat_error")) == 1
        if fault.mended_by:
            sql(lab, fault.mended_by)
        assert (await (await lab.play("ok", "thread")).result(20)).text == "ok", "the thread is free"
