"""Answering a tool call that waits for somebody."""

from __future__ import annotations

import asyncio
from typing import Final

from everturn.client.temporal import TemporalTurns
from everturn.store.records import SETTLED_CALLS
from everturn.store.store import Store
from everturn.turns import WaitOutcome

PATIENCE: Final = 15.0
"""Seconds that an answer waits for a turn whose worker has died: about seven until another one has taken it over."""
_AGAIN: Final = 0.2
_KINDS: Final = {"approve": "approval", "deny": "approval", "submit_tool_result": "client_tool"}


async def answered(
    temporal: TemporalTurns, store: Store | None, request_id: str, tool_call_id: str, update: str, given: object
) -> WaitOutcome:
    """Sends an answer. A workflow that a new worker is just replaying may not know yet that one of its calls waits; the
    store knows, and then the answer is sent again. So is the result of a front end that was faster than the workflow:
    the call is in its stream a moment before it waits."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while True:
        outcome = await temporal.answer(request_id, update, given)
        if outcome != "not_found" or store is None:
            return outcome
        info = await store.inspect(request_id)
        calls = info.tool_calls if info else []
        state = next((call.state for call in calls if call.tool_call_id == tool_call_id), None)
        if state in SETTLED_CALLS:
            return "already_resolved"
        early = update == "submit_tool_result" and state == "requested"
        waits = early or (
            info is not None and await _waits(store, info.turn.thread_id, request_id, tool_call_id, update)
        )
        found = await temporal.find(request_id) if waits else None
        if found is None or found.closed is not None or loop.time() > deadline:
            return outcome
        await asyncio.sleep(_AGAIN)


async def _waits(store: Store, thread_id: str, request_id: str, tool_call_id: str, update: str) -> bool:
    """Whether the call waits for this kind of answer."""
    wanted = (request_id, tool_call_id, _KINDS[update])
    return wanted in [(call.request_id, call.tool_call_id, call.kind) for call in await store.pending(thread_id)]
