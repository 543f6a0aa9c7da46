"""Whether there is room for another turn: how many of its thread and its tenant wait already."""

from __future__ import annotations

from typing import Final, Literal

from sqlalchemy import Connection, bindparam, func, select

from everturn.errors import TooBusy
from everturn.settings import Settings
from everturn.store.records import Admission, Room
from everturn.store.tables import IS_QUEUED, turns

_NEAR: Final = 256
"""So close to a tenant's limit, PostgreSQL admits the tenant's turns one after the other: none slips past it."""
_TENANTS_LOCK: Final = 0x45_56_54  # any constant: PostgreSQL's advisory locks are pairs of numbers
_COUNT: Final = select(func.count()).select_from(turns)
_COUNTS: Final = {
    "thread": _COUNT.where(turns.c.thread_id == bindparam("name"), IS_QUEUED),
    "tenant": _COUNT.where(turns.c.tenant_id == bindparam("name"), turns.c.ended_at.is_(None)),
}
Scope = Literal["thread", "tenant"]


def room_of(settings: Settings) -> Room:
    return Room(settings.max_queued_per_thread, settings.max_unfinished_per_tenant)


def lacks_room(connection: Connection, admission: Admission, *, waits: bool) -> TooBusy | None:
    """Why a new turn, whose row is written and whose thread is locked, must be refused. waits: it has to queue."""
    room, tenant = admission.room, admission.tenant_id
    if room is None:
        return None
    full = None
    if waits:
        full = _over(connection, "thread", admission.thread_id, room.per_thread, mine=1)
    if full is not None or tenant is None:
        return full
    if connection.dialect.name == "postgresql" and _count(connection, "tenant", tenant) + _NEAR >= room.per_tenant:
        connection.execute(select(func.pg_advisory_xact_lock(_TENANTS_LOCK, func.hashtext(tenant))))
    return _over(connection, "tenant", tenant, room.per_tenant, mine=1)


def check_room(connection: Connection, thread_id: str | None, tenant_id: str | None, room: Room) -> None:
    """For clients, before anything is sent; thread_id None: a turn that is not going to wait. Raises TooBusy."""
    full = _over(connection, "thread", thread_id, room.per_thread) if thread_id is not None else None
    if full is None and tenant_id is not None:
        full = _over(connection, "tenant", tenant_id, room.per_tenant)
    if full is not None:
        raise full


def _over(connection: Connection, scope: Scope, name: str, limit: int, *, mine: int = 0) -> TooBusy | None:
    length = _count(connection, scope, name) - mine
    return TooBusy(scope, name, length, limit) if length >= limit else None


def _count(connection: Connection, scope: Scope, name: str) -> int:
    counted: int | None = connection.scalar(_COUNTS[scope], {"name": name})
    return counted or 0
