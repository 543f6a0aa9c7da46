"""A turn gets its thread: the messages that it answers are stored, and its stream begins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from everturn.chunks import START, Event
from everturn.errors import BadInput
from everturn.ids import assistant_message_id, user_message_id
from everturn.messages import Part
from everturn.store.columns import AnyRow
from everturn.store.events import EventLog
from everturn.store.joining import Joiner, supersede, superseded_by
from everturn.store.locks import update_thread
from everturn.store.records import Admission, Admitted
from everturn.store.tables import drafts, messages
from everturn.turns import JsonDict

INSERT_MESSAGES: Final = insert(messages)


def run(
    connection: Connection,
    thread: AnyRow,
    turn: AnyRow,
    admission: Admission,
    joining: Sequence[Joiner],
    asked_at: datetime,
) -> Admitted:
    """Begins the turn. joining: queued turns whose messages it answers, too; they are over.

    Raises BadInput if its message was announced as a draft and is not here.
    """
    manifest = turn.manifest if turn.manifest is not None else admission.manifest or {}
    continued = _message_to_continue(connection, turn)
    if turn.trigger == "continue" and continued is None:
        return Admitted("nothing_to_continue", manifest=manifest)
    parts = _take_parts(connection, admission)
    said: list[JsonDict] = []
    if parts is not None:
        said.append(_said(turn.request_id, parts, admission.message_metadata))
        said += [_said(other.turn.request_id, other.parts, other.metadata) for other in joining]
    if admission.rewrite is not None:
        said = [{**message, "parts": admission.rewrite(message["parts"])} for message in said]
    position = _insert_user_messages(connection, turn.thread_id, said, thread.last_position, asked_at)
    for joiner in joining:
        supersede(connection, joiner.turn.request_id, turn.request_id, joined=True)
    update_thread(connection, turn.thread_id, running_request_id=turn.request_id, last_position=position)
    log = EventLog(turn.request_id, turn.last_seq)
    message_id = continued or assistant_message_id(turn.request_id)
    facts = {"messageId": message_id, "requestId": turn.request_id, "threadId": turn.thread_id}
    log.add(Event(START, facts))
    log.save(
        connection,
        status="running",
        started_at=asked_at,
        run_id=admission.run_id,
        after_request_id=admission.after,
        manifest=manifest,
        message_id=continued,
        prompt_position=position,
    )
    took_places = joining or turn.policy == "latest"
    superseded = superseded_by(connection, turn.request_id) if took_places else []
    return Admitted("run", manifest=manifest, superseded=superseded)


def _take_parts(connection: Connection, admission: Admission) -> list[Part] | None:
    if not admission.draft:
        return admission.parts
    of_turn = drafts.c.request_id == admission.request_id
    mine = of_turn & (drafts.c.digest == admission.digest)
    parts: list[Part] | None = connection.scalar(select(drafts.c.parts).where(mine))
    if parts is None:
        raise BadInput(
            f"the message of turn {admission.request_id!r} was announced as a draft and is not in the store; "
            "submit the turn again with the same store as the worker's"
        )
    connection.execute(delete(drafts).where(of_turn))
    return parts


def _said(request_id: str, parts: list[Part], metadata: JsonDict | None) -> JsonDict:
    return {
        "message_id": user_message_id(request_id),
        "request_id": request_id,
        "parts": parts,
        "metadata": metadata or None,
    }


def _insert_user_messages(
    connection: Connection, thread_id: str, said: Sequence[JsonDict], last_position: int, asked_at: datetime
) -> int:
    """Appends the messages to the thread; the position of its last message."""
    common = {"thread_id": thread_id, "role": "user", "hidden": False, "created_at": asked_at}
    rows = [{**message, **common, "position": last_position + number} for number, message in enumerate(said, 1)]
    if rows:
        connection.execute(INSERT_MESSAGES, rows)
    return last_position + len(rows)


def _message_to_continue(connection: Connection, turn: AnyRow) -> str | None:
    """The thread's newest message, if this turn continues it."""
    if turn.trigger != "continue":
        return None
    newest = (
        select(messages.c.message_id, messages.c.role, messages.c.hidden)
        .where(messages.c.thread_id == turn.thread_id)
        .order_by(messages.c.position.desc())
        .limit(1)
    )
    row = connection.execute(newest).one_or_none()
    return row.message_id if row is not None and row.role == "assistant" and not row.hidden else None
