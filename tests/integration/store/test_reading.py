"""What turns, people and clients read."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import create_engine, insert
from sqlalchemy.pool import NullPool

from everturn.errors import TurnNotFound
from everturn.store.address import parse_address
from everturn.store.columns import now
from everturn.store.records import Fold, HookTrace
from everturn.store.store import Store
from everturn.store.tables import messages, threads
from tests.integration.store.builders import admission, call, end, record, run_turn, text


async def test_a_prompt_ends_with_the_turns_own_message_and_its_steps(store: Store) -> None:
    await run_turn(store, "r0")
    await store.begin(admission("r1", message_metadata={"lang": "fr"}))
    await store.begin(admission("r2"))
    await store.open_step("r1", 0, activity="m", try_=1)
    made = record("r1", calls=[call()])
    await store.commit_step(made, [])
    prompt = await store.load_prompt("r1")
    assert [(m.request_id, m.role) for m in prompt.messages] == [("r0", "user"), ("r0", "assistant"), ("r1", "user")]
    assert prompt.messages[-1].metadata == {"lang": "fr"}
    assert prompt.steps == [made]
    assert prompt.turn.request_id == "r1"


async def test_decisions_and_state_are_kept_and_merged(store: Store) -> None:
    await store.begin(admission())
    for _ in range(2):
        await store.save_decision("r0", config={"model": "m"}, state={"a": 1}, hook_error="it raised")
        await store.merge_state("r0", {"b": [2]})
    await store.save_decision("r0", config=None, state=None, hook_error=None)
    facts = await store.load_turn("r0")
    assert (facts.config, facts.state) == ({"model": "m"}, {"a": 1, "b": [2]})
    info = await store.inspect("r0")
    assert info is not None
    assert info.before_turn_hook_error == "it raised"


async def test_state_that_many_merge_at_once_loses_nothing(store: Store) -> None:
    await store.begin(admission())
    await asyncio.gather(*(store.merge_state("r0", {f"k{n}": n}) for n in range(30)))
    assert (await store.load_turn("r0")).state == {f"k{n}": n for n in range(30)}


async def test_traces_are_read_back_in_order(store: Store) -> None:
    await store.begin(admission())
    log = [{"level": "info", "message": "hi", "data": {"n": 1}}]
    await store.record_traces(
        [
            HookTrace("r0", "before_turn", "Guard", "ok", 12, message="fine", logs=log, changed=["system"]),
            HookTrace("r0", "before_tool_call", "Guard", "timeout", 30_000, step=1, tool_call_id="c0"),
        ]
    )
    await store.record_traces([HookTrace("r0", "on_step_finish", "agent", "error", 1, step=1)])
    await store.record_traces([])
    info = await store.inspect("r0")
    assert info is not None
    assert [(t.point, t.outcome, t.step, t.logs, t.changed) for t in info.hook_traces] == [
        ("before_turn", "ok", None, log, ["system"]),
        ("before_tool_call", "timeout", 1, [], []),
        ("on_step_finish", "error", 1, [], []),
    ]
    with pytest.raises(TurnNotFound, match="r9"):
        await store.record_traces([HookTrace("r9", "before_turn", "Guard", "ok", 1)])


async def test_a_turn_is_inspected_in_full(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    calls = [call("c0"), call("c1", index=1, input=None, raw_input="[1", state="error", error="no object")]
    await store.commit_step(record(calls=calls), [])
    await end(store)
    info = await store.inspect("r0")
    assert info is not None
    assert [(s.step, s.text, s.tool_calls, s.model) for s in info.steps] == [(0, "answer 0", 2, "openai/test")]
    assert [(c.tool_call_id, c.state, c.input) for c in info.tool_calls] == [
        ("c0", "interrupted", {"city": "Paris"}),
        ("c1", "error", "[1"),
    ]
    summary = info.turn
    assert (summary.status, summary.stop_reason, summary.steps) == ("completed", "end_turn", 1)
    assert summary.submitted_at == "1970-01-12T13:46:40+00:00"
    assert summary.started_at is not None
    assert summary.ended_at is not None
    assert summary.started_at <= summary.ended_at


async def test_turns_are_listed_newest_first_by_thread_and_status(store: Store) -> None:
    for number in range(4):
        await store.begin(admission(f"r{number}", f"t{number % 2}"))
    await end(store, "r0")
    assert [t.request_id for t in await store.list_turns()] == ["r3", "r2", "r1", "r0"]
    assert [t.request_id for t in await store.list_turns("t0")] == ["r2", "r0"]
    assert [t.request_id for t in await store.list_turns(status="queued")] == ["r3", "r2"]
    assert [t.request_id for t in await store.list_turns("t0", "completed", 1)] == ["r0"]
    assert [t.request_id for t in await store.list_turns(limit=2)] == ["r3", "r2"]


async def test_a_thread_of_ten_thousand_messages_and_5_mb_loads(store: Store, store_url: str) -> None:
    created_at = now()
    long = [
        {
            "message_id": f"m{n}",
            "thread_id": "t",
            "position": n + 1,
            "role": ("user", "assistant")[n % 2],
            "parts": [text(f"{n} " + "word " * 100)],
            "hidden": n % 10 == 9,
            "created_at": created_at,
        }
        for n in range(10_000)
    ]
    with create_engine(parse_address(store_url).url, poolclass=NullPool).begin() as connection:
        counters = {"last_position": 10_000, "summary_from": 0, "summary_upto": 0}
        connection.execute(insert(threads).values(thread_id="t", created_at=created_at, **counters))
        connection.execute(insert(messages), long)
    assert (await store.begin(admission())).outcome == "run"
    prompt = await store.load_prompt("r0")
    assert len(prompt.messages) == 9_001
    assert prompt.messages[-1].request_id == "r0"


async def test_a_known_transcript_is_read_again_only_if_a_summary_stands_for_more_of_it(store: Store) -> None:
    for number in range(3):
        await run_turn(store, f"r{number}")
    await store.begin(admission("r3"))
    first = await store.load_prompt("r3")
    again = await store.load_prompt("r3", first)
    assert again.messages is first.messages
    ids = [message.id for message in first.messages]
    await store.fold(Fold("t", ids[0], ids[1], "what was said"))
    folded = await store.load_prompt("r3", again)
    assert folded.summary == "what was said"
    assert [message.id for message in folded.messages] == ids[2:]
