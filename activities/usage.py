"""What other turns have used: for hooks that ask, and for limits that a turn shares with them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from everturn.hooks.stopping import StopRule
from everturn.store.records import HookTrace
from everturn.store.store import Store
from everturn.turns import UsageScope, UsageSum

_POINT: Final = "stop_when"


async def used_by(store: Store, request_id: str, scope: UsageScope, window: timedelta | None = None) -> UsageSum:
    """What the turns of this turn's thread or user have used, this one included. Raises TurnNotFound."""
    return await store.usage_sum(request_id, scope, datetime.now(UTC) - window if window is not None else None)


async def used_up(store: Store, request_id: str, step: int, limits: Sequence[StopRule]) -> bool:
    """True if one of the limits is reached; a trace then says which."""
    for limit in limits:
        if limit.scope == "turn":
            continue
        window = timedelta(seconds=limit.window) if limit.window is not None else None
        excess = limit.excess(await used_by(store, request_id, limit.scope, window))
        if excess is not None:
            note = f"the {limit.scope} has used {excess}"
            trace = HookTrace(request_id, _POINT, "spent", "ok", 0, step=step, message=note, changed=["stop"])
            await store.record_traces([trace])
            return True
    return False
