"""Turn code in the store: versions that nobody edits, and the one that a turn has begun with."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Connection, Text, bindparam, cast, select, update

from everturn.errors import CodeNotFound
from everturn.store.columns import AnyRow, iso
from everturn.store.encoding import clean_text
from everturn.store.locks import insert_or_ignore, lock_turn, update_turn
from everturn.store.records import CodeRun, HookCode
from everturn.store.tables import hook_code, hook_traces, turns

NO_CODE: Final = 0
"""The version of a turn that began when its agent had no active code."""
_NEWEST: Final = (
    select(*hook_code.c).where(hook_code.c.agent == bindparam("of_agent")).order_by(hook_code.c.version.desc()).limit(1)
)
_VERSION: Final = select(*hook_code.c).where(
    hook_code.c.agent == bindparam("of_agent"), hook_code.c.version == bindparam("of_version")
)


def set_code(connection: Connection, agent: str, source: str, author: str, created_at: datetime) -> HookCode:
    """Stores a new version, which is active from here on; the active one if it has this source already."""
    source = clean_text(source)  # as it will be stored
    while True:
        newest = _newest(connection, agent)
        if newest is not None and newest.removed_at is None and newest.source == source:
            return _code_of(newest)
        version = newest.version + 1 if newest is not None else 1
        row = {"agent": agent, "version": version, "source": source, "author": author, "created_at": created_at}
        insert_or_ignore(connection, hook_code, row)  # ignored if another writer took the number: then look again


def remove_code(connection: Connection, agent: str, removed_by: str, removed_at: datetime) -> HookCode:
    """Ends the active version; the same answer when it is removed already. Raises CodeNotFound."""
    newest = _newest(connection, agent)
    if newest is None:
        raise CodeNotFound(agent)
    values = {"removed_by": removed_by, "removed_at": removed_at}
    mine = (hook_code.c.agent == agent) & (hook_code.c.version == newest.version)
    connection.execute(update(hook_code).where(mine, hook_code.c.removed_at.is_(None)).values(values))
    return get_code(connection, agent, newest.version)


def get_code(connection: Connection, agent: str, version: int | None = None) -> HookCode:
    """A version; by default the active one. Raises CodeNotFound."""
    row = _newest(connection, agent) if version is None else _version(connection, agent, version)
    if row is None or (version is None and row.removed_at is not None):
        raise CodeNotFound(agent, version)
    return _code_of(row)


def code_versions(connection: Connection, agent: str) -> list[HookCode]:
    """All versions, the newest first."""
    query = select(*hook_code.c).where(hook_code.c.agent == agent).order_by(hook_code.c.version.desc())
    return [_code_of(row) for row in connection.execute(query)]


def pin_code(connection: Connection, request_id: str) -> HookCode | None:
    """The version that a turn runs: the active one when this is asked for the first time, and then always that one.

    Raises TurnNotFound.
    """
    turn = lock_turn(connection, request_id)
    if turn.code_version is not None:
        row = _version(connection, turn.agent, turn.code_version)
        return _code_of(row) if row is not None else None
    row = _newest(connection, turn.agent)
    active = row if row is not None and row.removed_at is None else None
    update_turn(connection, request_id, code_version=active.version if active is not None else NO_CODE)
    return _code_of(active) if active is not None else None


def code_runs(connection: Connection, agent: str, limit: int) -> list[CodeRun]:
    """The newest runs of the agent's stored code first."""
    named = hook_traces.c.hook.endswith("@" + cast(turns.c.code_version, Text))
    query = (
        select(*hook_traces.c, turns.c.code_version)
        .join_from(turns, hook_traces, turns.c.request_id == hook_traces.c.request_id)
        .where(turns.c.agent == agent, turns.c.code_version > NO_CODE, named)
        .order_by(hook_traces.c.created_at.desc(), hook_traces.c.trace_id.desc())
        .limit(limit)
    )
    return [
        CodeRun(
            request_id=row.request_id,
            version=row.code_version,
            outcome=row.outcome,
            message=row.message,
            duration_ms=row.duration_ms,
            created_at=row.created_at.isoformat(),
            logs=row.logs or [],
            changed=row.changed or [],
        )
        for row in connection.execute(query)
    ]


def _newest(connection: Connection, agent: str) -> AnyRow | None:
    return connection.execute(_NEWEST, {"of_agent": agent}).one_or_none()


def _version(connection: Connection, agent: str, version: int) -> AnyRow | None:
    return connection.execute(_VERSION, {"of_agent": agent, "of_version": version}).one_or_none()


def _code_of(row: AnyRow) -> HookCode:
    return HookCode(
        agent=row.agent,
        version=row.version,
        source=row.source,
        author=row.author,
        created_at=row.created_at.isoformat(),
        removed_by=row.removed_by,
        removed_at=iso(row.removed_at),
    )
