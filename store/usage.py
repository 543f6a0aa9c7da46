"""What the turns of a thread or a user have used, for budgets."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, or_, select

from everturn.errors import TurnNotFound
from everturn.store.columns import AnyRow
from everturn.store.tables import turns
from everturn.turns import Usage, UsageScope, UsageSum

_OWNER: Final = select(turns.c.thread_id, turns.c.principal_id, turns.c.tenant_id).where(
    turns.c.request_id == bindparam("turn")
)
_SUMS: Final = select(
    func.count().label("turns"),
    *(
        func.coalesce(func.sum(turns.c[name]), 0).label(name)
        for name in ("steps", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "model_ms")
    ),
    func.sum(turns.c.cost).label("cost"),
)


def usage_sum(connection: Connection, request_id: str, scope: UsageScope, since: datetime | None) -> UsageSum:
    """Sums over the turns of this turn's thread, or of its principal's id within its tenant, itself included.

    since: only turns that were submitted then or later, each with all that it used. Raises TurnNotFound.
    """
    owner = connection.execute(_OWNER, {"turn": request_id}).one_or_none()
    if owner is None:
        raise TurnNotFound(request_id)
    wanted = _belongs(owner, scope)
    if since is not None:
        wanted &= or_(turns.c.submitted_at >= since, turns.c.request_id == request_id)
    row = connection.execute(_SUMS.where(wanted)).one()
    used = Usage(
        int(row.input_tokens), int(row.output_tokens), int(row.cached_tokens), int(row.reasoning_tokens), row.cost
    )
    return UsageSum(int(row.turns), int(row.steps), used, int(row.model_ms) / 1000)


def _belongs(owner: AnyRow, scope: UsageScope) -> ColumnElement[bool]:
    """A comparison with None becomes IS NULL: users without an id are one user of their tenant."""
    names = ("thread_id",) if scope == "thread" else ("principal_id", "tenant_id")
    return and_(*(turns.c[name] == getattr(owner, name) for name in names))
