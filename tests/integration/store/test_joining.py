"""Turns that take the place of others: the store's part of the policies drop, latest, merge and debounce."""

from __future__ import annotations

import asyncio
from typing import Any

from everturn.store.records import Admitted
from everturn.store.store import Store
from everturn.turns import Principal
from tests.integration.store.builders import admission, chunks, end, text, types


async def begin(store: Store, request_id: str, policy: str = "queue", **given: Any) -> Admitted:
    return await store.begin(admission(request_id, policy=policy, **given))


async def statuses(store: Store) -> dict[str, str]:
    return {turn.request_id: turn.status for turn in await store.list_turns("t")}


async def said(store: Store) -> list[str | None]:
    return [message.request_id for message in await store.messages("t")]


async def test_a_dropped_turn_ends_without_error_or_message_and_stays_dropped(store: Store) -> None:
    await begin(store, "r0")
    for _ in range(2):
        assert (await begin(store, "r1", "drop")).outcome == "known"
    ended = await store.ended("r1")
    assert ended is not None
    assert (ended.status, ended.error) == ("dropped", None)
    (chunk,) = await chunks(store, "r1")
    assert (chunk.type, chunk.data["status"]) == ("abort", "dropped")
    await end(store, "r0")
    assert (await begin(store, "r1", "drop")).outcome == "known"
    assert await said(store) == ["r0"]
    assert (await begin(store, "r2", "drop")).outcome == "run"


async def test_latest_supersedes_what_waits_before_it_and_names_what_runs(store: Store) -> None:
    for request_id in ("r0", "r1", "r2"):
        await begin(store, request_id)
    await begin(store, "r4")
    for _ in range(2):  # whoever asks again, because the answer got lost, is told the same
        admitted = await begin(store, "r3", "latest")
        assert (admitted.outcome, admitted.behind, admitted.cancel) == ("queued", "r0", "r0")
        assert admitted.superseded == ["r1", "r2"]
    assert await statuses(store) == {
        "r0": "running",
        "r1": "superseded",
        "r2": "superseded",
        "r3": "queued",
        "r4": "queued",
    }
    assert (await begin(store, "r1")).outcome == "known"
    assert types(await chunks(store, "r2")) == ["data-queued", "abort"]
    assert (await end(store, "r0", "aborted")).next_request_id == "r3"
    admitted = await begin(store, "r3", "latest")
    assert (admitted.outcome, admitted.superseded) == ("run", ["r1", "r2"])
    assert await said(store) == ["r0", "r3"]


async def test_a_turn_that_begins_after_a_later_latest_one_is_superseded_by_it(store: Store) -> None:
    await begin(store, "r0")
    await begin(store, "r2", "latest")
    assert (await begin(store, "r1")).outcome == "known"
    await end(store, "r0", "aborted")
    await begin(store, "r2", "latest")
    assert (await begin(store, "r1", run_id="again")).outcome == "known"
    assert (await begin(store, "r3")).outcome == "queued"
    assert await statuses(store) == {"r0": "aborted", "r1": "superseded", "r2": "running", "r3": "queued"}


async def test_a_turn_that_begins_while_a_later_latest_one_runs_is_superseded_by_it(store: Store) -> None:
    assert (await begin(store, "r2", "latest")).outcome == "run"
    assert (await begin(store, "r1")).outcome == "known"
    ended = await store.ended("r1")
    assert ended is not None
    assert (ended.status, ended.superseded_by, ended.joined) == ("superseded", "r2", False)
    assert await said(store) == ["r2"]


async def test_latest_does_not_stop_a_turn_that_was_submitted_after_it(store: Store) -> None:
    await begin(store, "r1")
    admitted = await begin(store, "r0", "latest")
    assert (admitted.outcome, admitted.cancel) == ("queued", None)


async def test_latest_with_a_predecessor_that_has_not_begun_supersedes_it_when_it_begins(store: Store) -> None:
    admitted = await begin(store, "r1", "latest", after="r0")
    assert (admitted.outcome, admitted.behind) == ("queued", "r0")
    assert (await begin(store, "r0")).outcome == "known"
    assert (await end(store, "r0", "completed")).next_request_id == "r1"
    assert (await begin(store, "r1", "latest", after="r0")).outcome == "run"


async def test_merged_messages_are_kept_and_stand_in_order_before_the_answer(store: Store) -> None:
    await begin(store, "r0")
    await store.put_draft("r2", "d", [text("a draft")])
    await begin(store, "r1", "queue", message_metadata={"n": 1})
    await begin(store, "r2", "merge", parts=None, draft=True, message_metadata={"n": 2})
    await begin(store, "r3", "merge", message_metadata={"n": 3})
    await end(store, "r0")
    for _ in range(2):
        admitted = await begin(store, "r1", "queue", message_metadata={"n": 1})
        assert (admitted.outcome, admitted.superseded) == ("run", ["r2", "r3"])
    messages = await store.messages("t")
    assert [(m.text, m.metadata) for m in messages] == [
        ("question r0", {}),
        ("question r1", {"n": 1}),
        ("a draft", {"n": 2}),
        ("question r3", {"n": 3}),
    ]
    assert [m.request_id for m in (await store.load_prompt("r1")).messages] == ["r0", "r1", "r2", "r3"]
    for request_id in ("r2", "r3"):
        head = await store.head(request_id)
        assert head is not None
        assert (head.status, head.answered_by) == ("superseded", "r1")
        assert (await begin(store, request_id, "merge")).outcome == "known"
        ended = await end(store, request_id)
        assert (ended.status, ended.superseded_by, ended.joined) == ("superseded", "r1", True)
    assert (await end(store, "r1")).next_request_id is None


async def test_a_message_whose_draft_is_not_here_does_not_join_nor_do_those_behind_it(store: Store) -> None:
    await begin(store, "r0")
    await begin(store, "r1")
    await begin(store, "r2", "merge", parts=None, draft=True)
    await begin(store, "r3", "merge")
    await end(store, "r0")
    assert (await begin(store, "r1")).superseded == []
    assert await said(store) == ["r0", "r1"]


async def test_only_messages_of_the_same_agent_and_user_join(store: Store) -> None:
    mine = Principal(id="u1", roles=("admin",), metadata={"plan": "pro"})
    others: list[dict[str, Any]] = [
        {"agent": "other"},
        {"tenant_id": "acme"},
        {"principal": None},
        {"principal": Principal(id="u2")},
    ]
    for number, other in enumerate(others):
        thread = f"t{number}"
        await begin(store, f"r{number}0", thread_id=thread)
        for place in (1, 2):
            given = {"principal": mine, **(other if place == 2 else {})}
            await begin(store, f"r{number}{place}", "merge", thread_id=thread, **given)
        await end(store, f"r{number}0")
        assert (await begin(store, f"r{number}1", "merge", thread_id=thread, principal=mine)).superseded == [], other
    await begin(store, "r90", thread_id="same")
    for request_id in ("r91", "r92"):
        await begin(store, request_id, "merge", thread_id="same", principal=mine)
    await end(store, "r90")
    assert (await begin(store, "r91", "merge", thread_id="same", principal=mine)).superseded == ["r92"]


async def test_a_message_that_waits_for_another_turn_first_does_not_join(store: Store) -> None:
    await begin(store, "r0")
    await begin(store, "r1")
    await begin(store, "r3", "merge", after="r2")
    await end(store, "r0")
    assert (await begin(store, "r1")).superseded == []


async def test_a_debounced_turn_waits_and_each_message_prolongs_it(store: Store) -> None:
    started = 1_000_000.0
    admitted = await begin(store, "r0", "debounce:2")
    assert (admitted.outcome, admitted.behind, admitted.hold_until) == ("queued", None, started + 2)
    assert (await begin(store, "r1", "debounce:2")).behind == "r0"
    admitted = await begin(store, "r0", "debounce:2", asked_at=started + 2)
    assert (admitted.outcome, admitted.hold_until) == ("queued", started + 3)
    assert await store.running("t") is None
    admitted = await begin(store, "r0", "debounce:2", asked_at=started + 3)
    assert (admitted.outcome, admitted.superseded) == ("run", ["r1"])
    assert await said(store) == ["r0", "r1"]


async def test_a_debounced_turn_joins_an_earlier_one_that_begins_after_it(store: Store) -> None:
    later = 1_000_010.0
    assert (await begin(store, "r1", "debounce:2")).hold_until is not None
    assert (await begin(store, "r0", "debounce:2")).hold_until is not None
    assert (await begin(store, "r0", "debounce:2", asked_at=later)).superseded == ["r1"]
    assert await said(store) == ["r0", "r1"]


async def test_a_debounced_turn_counts_as_busy_for_those_that_do_not_wait(store: Store) -> None:
    await begin(store, "r0", "debounce:2")
    assert (await begin(store, "r1", "drop")).outcome == "known"
    assert (await begin(store, "r2", "reject")).outcome == "busy"
    admitted = await begin(store, "r3", "latest")
    assert (admitted.outcome, admitted.superseded) == ("run", ["r0"])
    assert (await statuses(store))["r1"] == "dropped"


async def test_a_block_hides_the_messages_that_joined(store: Store) -> None:
    await begin(store, "r0")
    await begin(store, "r1", "merge")
    await begin(store, "r2", "merge")
    await end(store, "r0")
    await begin(store, "r1", "merge")
    await end(store, "r1", "blocked", text="no")
    assert [(m.request_id, m.hidden) for m in await store.messages("t")] == [
        ("r0", False),
        ("r1", True),
        ("r2", True),
        ("r1", True),
    ]


async def test_fifty_merged_turns_at_once_lose_no_message(store: Store) -> None:
    await begin(store, "r0")
    ids = [f"r{number}" for number in range(1, 51)]
    await asyncio.gather(*(begin(store, request_id, "merge") for request_id in reversed(ids)))
    assert (await end(store, "r0")).next_request_id == "r1"
    answers = await asyncio.gather(*(begin(store, request_id, "merge") for request_id in ids))
    assert answers[0].outcome == "run"
    assert await said(store) == ["r0", *ids]
