"""Turn code from the store, in the place of the hooks that stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from everturn.hooks.code.turn_code import StoredTurnCode
from everturn.hooks.registry import BoundHook
from everturn.store.store import Store


async def with_stored_code(store: Store, request_id: str, chain: Sequence[BoundHook]) -> list[BoundHook]:
    """The chain as this turn runs it: `StoredTurnCode` runs the version that the turn began with, and is named after
    it; where the agent had no code then, it is left out. Raises TurnNotFound."""
    if not any(isinstance(hook.owner, StoredTurnCode) for hook in chain):
        return list(chain)
    code = await store.pin_code(request_id)
    resolved: list[BoundHook] = []
    for hook in chain:
        if not isinstance(hook.owner, StoredTurnCode):
            resolved.append(hook)
        elif code is not None:
            run = partial(hook.owner.run, code.source)
            resolved.append(BoundHook(f"{hook.name}@{code.version}", hook.point, run, hook.owner))
    return resolved
