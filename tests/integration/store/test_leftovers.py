"""What the reconciler reads and deletes, page by page."""

from __future__ import annotations

import asyncio
import time

from everturn.store.store import Store
from tests.integration.store.builders import LIMIT, admission, end, text


async def test_unfinished_turns_come_in_pages_without_those_that_are_young_or_over(store: Store) -> None:
    names = [f"r{number}" for number in range(5)]
    for name in names:
        await store.begin(admission(name, f"t-{name}"))
    await store.begin(admission("r5", "t-r0"))  # queued behind r0
    await store.begin(admission("r9", "t-r9", submitted_at=time.time()))
    await end(store, "r3")
    first = await store.leftovers.unfinished(60, "", 3)
    assert first == ["r0", "r1", "r2"]
    assert await store.leftovers.unfinished(60, first[-1], 3) == ["r4", "r5"]
    assert await store.leftovers.unfinished(60, "r5", 3) == []


async def test_old_drafts_of_one_turn_count_once(store: Store) -> None:
    for digest in ("a", "b"):
        await store.put_draft("r0", digest, [text("long")])
    await store.put_draft("r1", "a", [text("long")])
    assert await store.leftovers.drafts(60, "", 10) == []
    assert await store.leftovers.drafts(0, "", 1) == ["r0"]
    assert await store.leftovers.drafts(0, "r0", 10) == ["r1"]


async def test_a_draft_that_was_sent_again_is_not_dropped(store: Store) -> None:
    await store.put_draft("r0", "a", [text("long")])
    async with asyncio.timeout(LIMIT):
        while not await store.leftovers.drafts(1.5, "", 10):
            await asyncio.sleep(0.05)
    await store.put_draft("r0", "a", [text("long")])
    await store.leftovers.drop_drafts(["r0"], 1.4)
    assert await store.leftovers.drafts(0, "", 10) == ["r0"]
    await store.leftovers.drop_drafts(["r0"], 0)
    assert await store.leftovers.drafts(0, "", 10) == []
