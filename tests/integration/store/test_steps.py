"""Model steps: fences, one write, failures."""

from __future__ import annotations

import asyncio

import pytest

from everturn.chunks import Event
from everturn.errors import BadInput
from everturn.store.records import EventBatch
from everturn.store.store import Store
from everturn.turns import TurnError, Usage
from tests.integration.store.builders import admission, call, chunks, deltas, end, record, shown, text, types

RATE = TurnError("rate_limit", "the provider asks to wait")


async def test_a_step_is_written_once_with_its_calls_usage_and_events(store: Store) -> None:
    await store.begin(admission())
    opening = await store.open_step("r0", 0, activity="m", try_=1)
    assert (opening.attempt, opening.stored, opening.superseded) == (1, None, False)
    made = record(calls=[call("c0", provider={"sig": "x"}), call("c1", index=1)], response={"id": "resp"})
    assert await store.commit_step(made, [Event("finish-step")])
    assert await store.commit_step(made, [Event("finish-step")])
    facts = await store.load_turn("r0")
    assert (facts.steps, facts.usage) == (1, Usage(10, 5, 2, 1, 0.25))
    assert (await store.load_prompt("r0")).steps == [made]
    await end(store)
    assert types(await chunks(store)).count("finish-step") == 1


async def test_opening_a_stored_step_returns_it(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    made = record(calls=[call()])
    await store.commit_step(made, [])
    opening = await store.open_step("r0", 0, activity="m", try_=2)
    assert opening.stored == made
    assert (await store.load_turn("r0")).steps == 1


async def test_usage_adds_up_over_steps(store: Store) -> None:
    await store.begin(admission())
    for step in range(3):
        await store.open_step("r0", step, activity=f"m{step}", try_=1)
        assert await store.commit_step(record(step=step, usage=Usage(1, 2, 3, 4, None if step == 1 else 0.5)), [])
    assert (await store.load_turn("r0")).usage == Usage(3, 6, 9, 12, 1.0)


async def test_the_same_opening_repeated_is_the_same_attempt(store: Store) -> None:
    await store.begin(admission())
    first = await store.open_step("r0", 0, activity="m", try_=1)
    assert await store.open_step("r0", 0, activity="m", try_=1) == first


async def test_a_later_try_supersedes_an_earlier_one(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    assert (await store.open_step("r0", 0, activity="m", try_=3)).attempt == 2
    late = await store.open_step("r0", 0, activity="m", try_=2)
    assert late.superseded
    assert (await store.open_step("r0", 0, activity="m", try_=1)).superseded


async def test_a_stale_attempt_cannot_write_anything(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    stale = store.writer("r0", 0, 1)
    stale.put(Event("text-start", {"id": "b"}))
    assert await stale.drain()
    await store.open_step("r0", 0, activity="m", try_=2)
    stale.put(Event("text-delta", {"id": "b", "delta": "late"}))
    assert not await stale.drain()
    assert stale.fenced
    assert not await store.append(EventBatch("r0", [Event("text-end", {"id": "b"})], 0, 1))
    assert not await store.commit_step(record(attempt=1), [])
    assert await store.commit_step(record(attempt=2), [])
    assert not await store.commit_step(record(attempt=1), [])
    assert not await store.commit_step(record(step=5, attempt=1), [])


async def test_the_text_of_a_void_attempt_is_reset_for_readers(store: Store) -> None:
    await store.begin(admission())
    for attempt, words in ((1, "first"), (2, "second"), (3, "")):
        opening = await store.open_step("r0", 0, activity="m", try_=attempt)
        if words:
            await store.append(EventBatch("r0", deltas(words), 0, opening.attempt))
    opening = await store.open_step("r0", 0, activity="m", try_=4)
    await store.append(EventBatch("r0", deltas("final"), 0, opening.attempt))
    await store.commit_step(record(attempt=4, parts=[text("final")]), [])
    await end(store)
    found = await chunks(store)
    resets = [(c.attempt, c.data) for c in found if c.type == "data-reset"]
    assert resets == [(2, {"step": 0, "attempt": 1}), (3, {"step": 0, "attempt": 2})]
    assert shown(found) == "final"


async def test_a_failed_attempt_is_counted_once_told_and_traced(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    for _ in range(2):
        assert await store.fail_attempt("r0", 0, 1, error=RATE, retry_in=2.0, detail="HTTP 429 quota of org-77") == 1
    await store.open_step("r0", 0, activity="m", try_=2)
    assert await store.fail_attempt("r0", 0, 2, error=RATE, retry_in=None, detail="again") == 2
    info = await store.inspect("r0")
    assert info is not None
    assert info.attempts_failed == 2
    assert [(t.point, t.hook, t.outcome, t.message) for t in info.hook_traces] == [
        ("model_step", "provider", "error", "HTTP 429 quota of org-77"),
        ("model_step", "provider", "error", "again"),
    ]
    await end(store, status="error", error=RATE)
    told = [c.data for c in await chunks(store) if c.type == "data-retrying"]
    assert told == [{"step": 0, "attempt": 1, "error": RATE.message, "retryIn": 2.0}]
    assert "org-77" not in str(await chunks(store))


async def test_a_turn_that_is_over_lets_nobody_work(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    writer = store.writer("r0", 0, 1)
    await end(store, status="aborted")
    assert (await store.open_step("r0", 0, activity="m", try_=2)).superseded
    assert not await store.commit_step(record(), [])
    assert not await store.append(EventBatch("r0", [Event("text-start")]))
    writer.put(Event("text-start"))
    assert not await writer.drain()
    assert await store.fail_attempt("r0", 0, 1, error=RATE, retry_in=1.0, detail="") == 1
    assert types(await chunks(store)) == ["start", "abort"]


async def test_a_tool_call_id_used_twice_in_a_turn_is_refused_whole(store: Store) -> None:
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    with pytest.raises(BadInput, match="'c0' is used twice"):
        await store.commit_step(record(calls=[call("c0"), call("c0", index=1)]), [])
    assert (await store.load_turn("r0")).steps == 0
    assert await store.commit_step(record(calls=[call("c0")]), [])
    await store.open_step("r0", 1, activity="n", try_=1)
    with pytest.raises(BadInput, match="'c0' is used twice"):
        await store.commit_step(record(step=1, calls=[call("c0", step=1)]), [])


async def test_many_attempts_opened_at_once_get_distinct_numbers_and_one_wins(store: Store) -> None:
    await store.begin(admission())
    openings = await asyncio.gather(*(store.open_step("r0", 0, activity=f"m{n}", try_=1) for n in range(20)))
    assert sorted(opening.attempt for opening in openings) == list(range(1, 21))
    wrote = await asyncio.gather(*(store.commit_step(record(attempt=n), []) for n in range(1, 21)))
    assert wrote == [False] * 19 + [True]


async def test_hostile_text_is_stored_with_replacements(store: Store) -> None:
    await store.begin(admission(parts=[text("ok")]))
    await store.open_step("r0", 0, activity="m", try_=1)
    bad = "a\x00b\ud800c"
    made = record(
        parts=[text(bad)],
        calls=[call(tool_name="x\x00", input=None, raw_input=bad, state="error", error=bad)],
        response={"\x00": [bad, float("nan")]},
    )
    assert await store.commit_step(made, [Event("text-delta", {"id": "1", "delta": bad})])
    [stored] = (await store.load_prompt("r0")).steps
    assert stored.parts == [text("a\ufffdb\ufffdc")]
    assert stored.calls[0].raw_input == stored.calls[0].error == "a\ufffdb\ufffdc"
    assert stored.response == {"\ufffd": ["a\ufffdb\ufffdc", None]}
    with pytest.raises(BadInput, match="JSON"):
        await store.append(EventBatch("r0", [Event("x", {"when": object()})]))
    with pytest.raises(BadInput, match="JSON"):
        await store.merge_state("r0", {"when": object()})
