"""Tool calls: at most one run that nobody knows the end of."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from everturn.chunks import Event
from everturn.errors import BadInput
from everturn.store.store import Store
from tests.integration.store.builders import admission, call, chunks, end, record, types


@pytest_asyncio.fixture
async def turn(store: Store) -> Store:
    """A store with a turn whose step has asked for two calls."""
    await store.begin(admission())
    await store.open_step("r0", 0, activity="m", try_=1)
    await store.commit_step(record(calls=[call("c0"), call("c1", index=1)]), [])
    return store


async def test_a_requested_call_runs_once(turn: Store) -> None:
    opening = await turn.open_call("r0", "c0", idempotent=False, activity="t", try_=1)
    assert (opening.outcome, opening.call.state) == ("run", "running")
    again = await turn.open_call("r0", "c0", idempotent=False, activity="t", try_=1)
    assert again.outcome == "run"


@pytest.mark.parametrize(("activity", "try_"), [("t", 2), ("other", 1)])
async def test_a_call_whose_worker_died_is_lost_unless_it_is_idempotent(turn: Store, activity: str, try_: int) -> None:
    for call_id in ("c0", "c1"):
        await turn.open_call("r0", call_id, idempotent=False, activity="t", try_=1)
    assert (await turn.open_call("r0", "c0", idempotent=False, activity=activity, try_=try_)).outcome == "lost"
    assert (await turn.open_call("r0", "c1", idempotent=True, activity=activity, try_=try_)).outcome == "run"


async def test_an_earlier_try_is_superseded(turn: Store) -> None:
    await turn.open_call("r0", "c0", idempotent=True, activity="t", try_=2)
    assert (await turn.open_call("r0", "c0", idempotent=True, activity="t", try_=1)).outcome == "superseded"


async def test_the_first_settlement_wins_and_tells_its_events_once(turn: Store) -> None:
    await turn.open_call("r0", "c0", idempotent=False, activity="t", try_=1)
    done = call("c0", state="done", output=[1, None], raw_output={"big": True}, duration_ms=7)
    told = [Event("tool-output-available", {"toolCallId": "c0", "output": [1, None]})]
    assert await turn.settle_call("r0", done, told) == done
    assert await turn.settle_call("r0", call("c0", state="error", error="late"), told) == done
    opening = await turn.open_call("r0", "c0", idempotent=True, activity="t", try_=2)
    assert (opening.outcome, opening.call) == ("settled", done)
    await end(turn)
    assert types(await chunks(turn)) == ["start", "tool-output-available", "tool-output-error", "finish"]


async def test_settlements_at_once_store_one_outcome(turn: Store) -> None:
    outcomes = await asyncio.gather(
        *(turn.settle_call("r0", call("c0", state="done", output=n), [Event("x")]) for n in range(20))
    )
    assert len({str(outcome.output) for outcome in outcomes}) == 1
    await end(turn)
    assert types(await chunks(turn)).count("x") == 1


async def test_unknown_calls_and_states_that_settle_nothing_are_refused(turn: Store) -> None:
    with pytest.raises(BadInput, match="no tool call 'c9'"):
        await turn.open_call("r0", "c9", idempotent=True, activity="t", try_=1)
    with pytest.raises(BadInput, match="no tool call 'c9'"):
        await turn.settle_call("r0", call("c9", state="done"), [])
    with pytest.raises(BadInput, match="not as 'running'"):
        await turn.settle_call("r0", call("c0", state="running"), [])


async def test_no_call_runs_after_the_end(turn: Store) -> None:
    await turn.open_call("r0", "c0", idempotent=True, activity="t", try_=1)
    await end(turn, status="aborted")
    opening = await turn.open_call("r0", "c0", idempotent=True, activity="t", try_=2)
    assert (opening.outcome, opening.call.state) == ("settled", "interrupted")
