"""Admission: who runs, who waits, who is refused."""

from __future__ import annotations

import asyncio

import pytest

from everturn.errors import BadInput, TurnNotFound
from everturn.store.store import Store
from everturn.turns import Principal
from tests.integration.store.builders import admission, chunks, end, record, run_turn, text, types


async def test_the_first_turn_of_a_thread_runs_and_its_message_is_stored(store: Store) -> None:
    principal = Principal(id="u1", email="a@example.com", roles=("admin",), metadata={"plan": "pro"})
    asked = admission(
        manifest={"before_turn": ["agent"]},
        principal=principal,
        body={"k": [1, None]},
        tenant_id="acme",
        message_metadata={"lang": "fr"},
    )
    admitted = await store.begin(asked)
    assert (admitted.outcome, admitted.manifest) == ("run", {"before_turn": ["agent"]})
    facts = await store.load_turn("r0")
    assert (facts.status, facts.principal, facts.body, facts.tenant_id) == ("running", principal, asked.body, "acme")
    [message] = await store.messages("t")
    assert (message.id, message.role, message.text) == ("r0:user", "user", "question r0")
    assert message.metadata == {"lang": "fr"}
    assert message.created_at is not None
    assert message.created_at.endswith("+00:00")
    assert await store.running("t") == "r0"


async def test_begin_twice_inserts_once_and_answers_the_same(store: Store) -> None:
    first = await store.begin(admission(manifest={"before_turn": ["agent"]}))
    second = await store.begin(admission(manifest={"before_turn": ["other"]}))
    assert first == second
    assert len(await store.messages("t")) == 1
    await end(store)
    assert types(await chunks(store)) == ["start", "finish"]


async def test_another_run_of_the_same_turn_adopts_it(store: Store) -> None:
    await store.begin(admission())
    assert (await store.begin(admission(run_id="later"))).outcome == "run"
    head = await store.head("r0")
    assert head is not None
    assert head.run_id == "later"


async def test_the_same_id_with_another_digest_is_a_conflict_in_every_state(store: Store) -> None:
    await store.begin(admission("r0"))
    await store.begin(admission("r1"))
    other = admission("r0", digest="other")
    assert (await store.begin(other)).outcome == "conflict"
    assert (await store.begin(admission("r1", digest="other"))).outcome == "conflict"
    assert (await store.begin(admission("r0", thread_id="elsewhere"))).outcome == "conflict"
    await end(store, "r0")
    assert (await store.begin(other)).outcome == "conflict"
    assert await store.messages("elsewhere") == []


async def test_a_turn_that_is_over_is_known(store: Store) -> None:
    await run_turn(store)
    assert (await store.begin(admission())).outcome == "known"
    assert len(await store.messages("t")) == 2


async def test_a_turn_cancelled_while_it_waits_is_known_and_leaves_no_message(store: Store) -> None:
    await store.begin(admission("r0"))
    await store.begin(admission("r1"))
    await end(store, "r1", "aborted", reason="stop pressed")
    assert (await store.begin(admission("r1"))).outcome == "known"
    assert [m.request_id for m in await store.messages("t")] == ["r0"]
    assert types(await chunks(store, "r1")) == ["data-queued", "abort"]
    assert await store.running("t") == "r0"


async def test_twenty_queued_turns_run_in_order_whatever_the_order_in_which_they_ask(store: Store) -> None:
    await store.begin(admission("r0"))
    ids = [f"r{number}" for number in range(1, 21)]
    for request_id in reversed(ids):
        assert (await store.begin(admission(request_id))).outcome == "queued"
    current, order = "r0", []
    while True:
        ended = await end(store, current)
        if ended.next_request_id is None:
            break
        current = ended.next_request_id
        others = [request_id for request_id in ids if request_id not in order and request_id != current]
        for other in others[-2:]:
            assert (await store.begin(admission(other))).outcome == "queued"
        assert (await store.begin(admission(current))).outcome == "run"
        order.append(current)
    assert order == ids
    assert [m.request_id for m in await store.messages("t")] == ["r0", *ids]


async def test_a_queued_turn_is_told_once_whom_it_waits_for(store: Store) -> None:
    for request_id in ("r0", "r1", "r2"):
        await store.begin(admission(request_id))
    for _ in range(3):
        assert (await store.begin(admission("r2"))).behind == "r1"
    await end(store, "r1", "aborted")
    assert (await store.begin(admission("r2"))).behind == "r0"
    await end(store, "r2", "aborted")
    told = [chunk.data for chunk in await chunks(store, "r2") if chunk.type == "data-queued"]
    assert told == [{"behind": "r1"}, {"behind": "r0"}]


async def test_policy_reject_drops_the_turn_and_keeps_no_message(store: Store) -> None:
    await store.begin(admission("r0"))
    refused = admission("r1", policy="reject")
    assert (await store.begin(refused)).outcome == "busy"
    assert (await store.begin(refused)).outcome == "busy"
    assert (await store.begin(admission("r1", policy="reject", run_id="another"))).outcome == "known"
    ended = await store.ended("r1")
    assert ended is not None
    assert ended.error is not None
    assert (ended.status, ended.error.type) == ("dropped", "ThreadBusy")
    [chunk] = await chunks(store, "r1")
    assert (chunk.type, chunk.data["type"]) == ("error", "ThreadBusy")
    assert "r0" in chunk.data["errorText"]
    assert len(await store.messages("t")) == 1


async def test_policy_reject_runs_in_an_idle_thread(store: Store) -> None:
    assert (await store.begin(admission("r1", policy="reject"))).outcome == "run"


async def test_a_turn_waits_for_a_predecessor_that_has_not_begun(store: Store) -> None:
    follower = admission("r1", after="r0")
    admitted = await store.begin(follower)
    assert (admitted.outcome, admitted.behind) == ("queued", "r0")
    assert (await store.begin(admission("r0"))).outcome == "run"
    assert (await store.begin(follower)).outcome == "queued"
    assert (await end(store, "r0")).next_request_id == "r1"
    assert (await store.begin(follower)).outcome == "run"


async def test_a_predecessor_that_never_comes_is_given_up_with_after_none(store: Store) -> None:
    assert (await store.begin(admission("r1", after="r0"))).outcome == "queued"
    assert (await store.begin(admission("r1", after=None))).outcome == "run"


async def test_a_predecessor_of_another_thread_does_not_hold(store: Store) -> None:
    await store.begin(admission("r0", "elsewhere"))
    assert (await store.begin(admission("r1", after="r0"))).outcome == "run"


async def test_a_predecessor_with_a_later_clock_still_goes_first(store: Store) -> None:
    await store.begin(admission("r0"))
    await store.begin(admission("r1", after="r5"))
    await store.begin(admission("r5"))
    assert (await end(store, "r0")).next_request_id == "r5"
    assert (await store.begin(admission("r1", after="r5"))).behind == "r5"
    assert (await store.begin(admission("r5"))).outcome == "run"
    assert (await end(store, "r5")).next_request_id == "r1"
    assert (await store.begin(admission("r1", after="r5"))).outcome == "run"


async def test_a_draft_becomes_the_message_when_the_turn_runs(store: Store) -> None:
    await store.begin(admission("r0"))
    await store.put_draft("r1", "another", [text("of a request that lost")])
    await store.put_draft("r1", "d", [text("x" * 300_000)])
    await store.put_draft("r1", "d", [text("x" * 300_000)])
    asked = admission("r1", parts=None, draft=True)
    assert (await store.begin(asked)).outcome == "queued"
    await end(store, "r0")
    assert (await store.begin(asked)).outcome == "run"
    assert (await store.begin(asked)).outcome == "run"
    assert [len(m.text) for m in await store.messages("t")] == [11, 300_000]


async def test_a_missing_draft_is_an_error_and_changes_nothing(store: Store) -> None:
    with pytest.raises(BadInput, match="draft"):
        await store.begin(admission("r0", parts=None, draft=True))
    assert await store.head("r0") is None
    assert (await store.begin(admission("r1"))).outcome == "run"


async def test_fifty_begins_of_one_turn_at_once_store_one_message(store: Store) -> None:
    answers = await asyncio.gather(*(store.begin(admission()) for _ in range(50)))
    assert {answer.outcome for answer in answers} == {"run"}
    assert len(await store.messages("t")) == 1


async def test_fifty_turns_of_one_thread_at_once_are_one_running_and_the_rest_queued(store: Store) -> None:
    answers = await asyncio.gather(*(store.begin(admission(f"r{n}")) for n in range(50)))
    assert sorted(answer.outcome for answer in answers) == ["queued"] * 49 + ["run"]
    assert len(await store.list_turns("t", status="queued")) == 49


async def test_an_unknown_turn_is_not_found(store: Store) -> None:
    for attempt in (store.load_turn("r9"), store.load_prompt("r9"), store.merge_state("r9", {}), end(store, "r9")):
        with pytest.raises(TurnNotFound, match="r9"):
            await attempt
    assert await store.head("r9") is None
    assert await store.inspect("r9") is None
    assert await store.ended("r9") is None
    assert await store.running("t9") is None


async def test_a_continuation_extends_the_last_message(store: Store) -> None:
    await run_turn(store, "r0")
    assert (await store.begin(admission("r1", parts=None, trigger="continue"))).outcome == "run"
    await store.open_step("r1", 0, activity="model", try_=1)
    prompt = await store.load_prompt("r1")
    assert [m.role for m in prompt.messages] == ["user", "assistant"]
    await store.commit_step(record("r1", parts=[text("more")]), [])
    ended = await end(store, "r1")
    again = await end(store, "r1")
    assert ended.message is not None
    assert ended.message.id == "r0:assistant"
    assert ended.message.text == "answer 0more"
    assert again.message == ended.message
    assert len(await store.messages("t")) == 2
    start = (await chunks(store, "r1"))[0]
    assert start.data["messageId"] == "r0:assistant"
    await store.prune_events(-1)
    assert [c.data["delta"] for c in await chunks(store, "r1") if c.type == "text-delta"] == ["more"]
