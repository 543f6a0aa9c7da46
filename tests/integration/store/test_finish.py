"""Endings: one, complete, and the thread moves on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn.chunks import Event
from everturn.errors import BadInput
from everturn.store.records import Ended, Ending, EventBatch
from everturn.store.store import Store
from everturn.turns import TurnError, TurnStatus, Usage
from tests.integration.store.builders import (
    admission,
    call,
    chunks,
    deltas,
    end,
    record,
    run_turn,
    text,
    types,
)

STEP = {"type": "step-start"}


async def parts_of(store: Store, **ending: Any) -> list[dict[str, Any]]:
    ended = await end(store, **ending)
    return ended.message.parts if ended.message is not None else []


async def test_the_message_is_assembled_from_the_steps_in_order(store: Store) -> None:
    await store.begin(admission())
    calls = [
        call("c0", provider={"google": {"signature": "s"}}),
        call("c1", index=1, tool_name="search"),
        call("c2", index=2, input=None, raw_input='{"a', state="error", error="not JSON"),
    ]
    thought = {"type": "reasoning", "text": "hm", "providerMetadata": {"anthropic": {"signature": "x"}}}
    named = [{"type": "tool-call", "toolCallId": c.tool_call_id} for c in calls]
    await store.open_step("r0", 0, activity="m0", try_=1)
    await store.commit_step(record(calls=calls, parts=[thought, text("let me look"), *named]), [])
    await store.open_call("r0", "c0", idempotent=False, activity="t0", try_=1)
    await store.settle_call("r0", call("c0", state="done", output={"t": 20}), [])
    await store.settle_call("r0", call("c1", index=1, state="blocked", output="not allowed"), [])
    await store.open_step("r0", 1, activity="m1", try_=1)
    file = {"type": "file", "mediaType": "image/png", "url": "https://example.com/x.png"}
    await store.commit_step(record(step=1, parts=[text("it is 20"), file, text("")]), [])
    assert await parts_of(store) == [
        STEP,
        {**thought, "state": "done"},
        {**text("let me look"), "state": "done"},
        {
            "type": "tool-get_weather",
            "toolCallId": "c0",
            "state": "output-available",
            "input": {"city": "Paris"},
            "output": {"t": 20},
            "callProviderMetadata": {"google": {"signature": "s"}},
        },
        {
            "type": "tool-search",
            "toolCallId": "c1",
            "state": "output-available",
            "input": {"city": "Paris"},
            "output": "not allowed",
        },
        {
            "type": "tool-get_weather",
            "toolCallId": "c2",
            "state": "output-error",
            "input": {},
            "rawInput": '{"a',
            "errorText": "not JSON",
        },
        STEP,
        {**text("it is 20"), "state": "done"},
        file,
    ]


async def test_finish_twice_changes_nothing(store: Store) -> None:
    first = await run_turn(store)
    for status in ("completed", "aborted", "error"):
        assert await end(store, status=status) == first
    assert await store.ended("r0") == first
    assert types(await chunks(store)).count("finish") == 1
    assert len(await store.messages("t")) == 2


async def test_the_finish_chunk_carries_status_message_and_usage(store: Store) -> None:
    ended = await run_turn(store)
    assert ended.usage == Usage(10, 5, 2, 1, 0.25)
    assert (await chunks(store))[-1].data == {
        "finishReason": "end_turn",
        "status": "completed",
        "messageId": "r0:assistant",
        "usage": {
            "inputTokens": 10,
            "outputTokens": 5,
            "totalTokens": 15,
            "cachedInputTokens": 2,
            "reasoningTokens": 1,
            "cost": 0.25,
        },
    }


async def test_a_turn_without_content_stores_no_message(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    await store.commit_step(record(parts=[text("")]), [])
    ended = await end(store)
    assert ended.message is None
    assert [m.role for m in await store.messages("t")] == ["user"]
    assert (await chunks(store))[-1].data["messageId"] is None


@pytest.mark.parametrize("status", ["aborted", "error"])
async def test_streamed_text_of_an_unfinished_step_is_kept(store: Store, status: TurnStatus) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    await store.commit_step(record(parts=[text("done")]), [])
    await store.open_step("r0", 1, activity="n", try_=1)
    await store.append(EventBatch("r0", deltas("void"), 1, 1))
    await store.open_step("r0", 1, activity="n", try_=2)
    await store.append(EventBatch("r0", [*deltas("half ", "an", block="1"), *deltas("answer", block="2")], 1, 2))
    ended = await end(store, status=status)
    assert ended.message is not None
    assert ended.message.hidden is False
    assert [p.get("text") for p in ended.message.parts] == [None, "done", None, "half an", "answer"]
    assert len(await store.messages("t")) == 2


async def test_a_completed_turn_takes_no_text_from_an_unfinished_step(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    await store.append(EventBatch("r0", deltas("half"), 0, 1))
    assert await parts_of(store) == []


async def test_open_tool_calls_are_closed_as_interrupted(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    await store.commit_step(record(calls=[call("c0"), call("c1", index=1), call("c2", index=2)]), [])
    await store.open_call("r0", "c0", idempotent=False, activity="t", try_=1)
    await store.settle_call("r0", call("c1", index=1, state="done", output=1), [])
    ended = await end(store, status="aborted", reason="user pressed stop")
    assert ended.message is not None
    states = {p["toolCallId"]: p["state"] for p in ended.message.parts if "toolCallId" in p}
    assert states == {"c0": "output-error", "c1": "output-available", "c2": "output-error"}
    found = await chunks(store)
    assert types(found) == ["start", "tool-output-error", "tool-output-error", "abort"]
    assert [c.data["toolCallId"] for c in found[1:3]] == ["c0", "c2"]
    assert found[-1].data == {"reason": "user pressed stop"}
    late = await store.settle_call("r0", call("c0", state="done", output="late"), [Event("tool-output-available")])
    assert late.state == "interrupted"
    assert len(await chunks(store)) == 4


async def test_a_blocked_turn_is_streamed_stored_and_hidden_from_prompts(store: Store) -> None:
    await store.begin(admission("r0"))
    ended = await end(store, "r0", "blocked", text="not about that", stop_reason="blocked")
    assert ended.message is not None
    assert (ended.message.text, ended.message.hidden) == ("not about that", True)
    found = await chunks(store)
    assert types(found) == ["start", "text-start", "text-delta", "text-end", "finish"]
    assert found[2].data["delta"] == "not about that"
    assert (found[-1].data["status"], found[-1].data["finishReason"]) == ("blocked", "blocked")
    assert [m.hidden for m in await store.messages("t")] == [True, True]
    await store.begin(admission("r1"))
    assert [m.request_id for m in (await store.load_prompt("r1")).messages] == ["r1"]


async def test_an_error_is_shown_and_stored(store: Store) -> None:
    await store.begin(admission())
    error = TurnError("overloaded", "the model is overloaded")
    ended = await end(store, status="error", error=error, stop_reason="error")
    assert ended.error == error
    assert (await chunks(store))[-1].data == {"type": "overloaded", "errorText": "the model is overloaded"}
    info = await store.inspect("r0")
    assert info is not None
    assert info.turn.error == error


@pytest.mark.parametrize("status", ["dropped", "superseded"])
async def test_turns_that_never_ran_end_with_abort(store: Store, status: TurnStatus) -> None:
    await store.begin(admission("r0"))
    await store.begin(admission("r1"))
    await end(store, "r1", status)
    assert types(await chunks(store, "r1")) == ["data-queued", "abort"]


async def test_a_message_persisted_before_the_end_is_written_once(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    await store.commit_step(record(calls=[call()]), [])
    early = await store.persist_message("r0")
    assert early == await store.persist_message("r0")
    ended = await end(store, status="error")
    assert early is not None
    assert ended.message is not None
    assert ended.message.id == early.id
    assert [m.id for m in await store.messages("t")] == ["r0:user", "r0:assistant"]


async def test_a_continued_message_persisted_before_the_end_is_extended_once(store: Store) -> None:
    await run_turn(store, "r0")
    await store.begin(admission("r1", parts=None, trigger="continue"))
    await store.open_step("r1", 0, activity="m", try_=1)
    await store.commit_step(record("r1", parts=[text(" and more")]), [])
    await store.persist_message("r1")
    ended = await end(store, "r1", "error")
    assert ended.message is not None
    assert ended.message.text == "answer 0 and more"


async def test_the_thread_is_free_after_any_ending_and_the_next_in_line_is_named(store: Store) -> None:
    await store.begin(admission("r0"))
    await store.begin(admission("r1"))
    assert (await end(store, "r0", "error")).next_request_id == "r1"
    assert await store.running("t") is None
    assert (await end(store, "r0")).next_request_id == "r1"
    await store.begin(admission("r1"))
    assert (await end(store, "r0")).next_request_id is None
    assert (await end(store, "r1")).next_request_id is None


async def test_a_queued_turn_that_ends_does_not_free_the_thread(store: Store) -> None:
    await store.begin(admission("r0"))
    for request_id in ("r1", "r2"):
        await store.begin(admission(request_id))
    assert (await end(store, "r1", "aborted")).next_request_id is None
    assert await store.running("t") == "r0"


async def test_a_status_that_ends_nothing_is_refused(store: Store) -> None:
    await store.begin(admission())
    with pytest.raises(BadInput, match="running"):
        await store.finish(Ending("r0", "running"))


async def test_many_finishes_at_once_end_a_turn_once(store: Store) -> None:
    await store.begin(admission())
    statuses: list[TurnStatus] = ["completed", "aborted", "error"]
    endings: list[Ended] = await asyncio.gather(*(end(store, "r0", statuses[n % 3]) for n in range(30)))
    assert len({ended.status for ended in endings}) == 1
    assert len([c for c in await chunks(store) if c.is_end]) == 1


async def test_positions_have_no_gaps_under_concurrent_threads(store: Store) -> None:
    await asyncio.gather(*(run_turn(store, f"r{n}", f"t{n % 5}") for n in range(5)))
    for number in range(5):
        assert [m.role for m in await store.messages(f"t{number}")] == ["user", "assistant"]
