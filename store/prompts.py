"""What a running turn reads and decides: its facts, its prompt material, its configuration and state."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, bindparam, select

from everturn.errors import BadInput, TurnNotFound
from everturn.messages import Message
from everturn.store.columns import AnyRow
from everturn.store.damage import check_parts, readable
from everturn.store.locks import lock_thread, lock_turn, update_thread, update_turn
from everturn.store.records import Fold, PromptMaterial, TurnFacts
from everturn.store.rows import FACTS, facts_of
from everturn.store.steps import stored_steps
from everturn.store.tables import messages, threads, turns
from everturn.turns import JsonDict

_FACTS: Final = select(*FACTS).where(turns.c.request_id == bindparam("turn"))
_FACTS_AND_THREAD: Final = (
    select(*FACTS, threads.c.context, threads.c.summary, threads.c.summary_from, threads.c.summary_upto)
    .join(threads, threads.c.thread_id == turns.c.thread_id)
    .where(turns.c.request_id == bindparam("turn"))
)
_POSITION: Final = select(messages.c.position).where(
    messages.c.thread_id == bindparam("thread"), messages.c.message_id == bindparam("message")
)
_TRANSCRIPT: Final = (
    select(messages.c.message_id, messages.c.role, messages.c.parts, messages.c.request_id, messages.c["metadata"])
    .where(
        messages.c.thread_id == bindparam("thread"),
        messages.c.position <= bindparam("position"),
        messages.c.hidden.is_(False),
        ~messages.c.position.between(bindparam("folded_from"), bindparam("folded_upto")),
    )
    .order_by(messages.c.position)
)


def load_turn(connection: Connection, request_id: str) -> TurnFacts:
    """Raises TurnNotFound."""
    return facts_of(_facts(connection, request_id))


def load_prompt(connection: Connection, request_id: str, known: PromptMaterial | None = None) -> PromptMaterial:
    """The visible transcript up to the turn's own message, without times, and its steps.

    known: the turn's material as it was before; its transcript is not read again if it is of the same extent. Raises
    TurnNotFound, TranscriptDamaged.
    """
    row = connection.execute(_FACTS_AND_THREAD, {"turn": request_id}).one_or_none()
    if row is None:
        raise TurnNotFound(request_id)
    extent = (row.prompt_position, row.summary_from, row.summary_upto)
    with readable(row.thread_id):
        is_known = known is not None and known.extent == extent
        transcript = known.messages if known and is_known else _transcript(connection, row.thread_id, extent)
        steps = stored_steps(connection, request_id) if row.steps else []
    return PromptMaterial(facts_of(row), transcript, steps, row.summary, row.context, extent)


def save_context(connection: Connection, thread_id: str, context: dict[str, str] | None) -> None:
    """Keeps the assembled blocks of a thread's system prompt; None lets them be assembled again."""
    lock_thread(connection, thread_id)
    update_thread(connection, thread_id, context=context)


def fold(connection: Connection, given: Fold) -> None:
    """Lets a summary stand for messages in prompts; the messages stay. Raises BadInput for unknown messages."""
    thread = lock_thread(connection, given.thread_id)
    places: list[int] = []
    for message_id in (given.first_message_id, given.last_message_id):
        place = connection.scalar(_POSITION, {"thread": given.thread_id, "message": message_id})
        if place is None:
            raise BadInput(f"thread {given.thread_id!r} has no message {message_id!r}")
        places.append(place)
    first = thread.summary_from or places[0]
    values = {"summary": given.summary, "summary_from": min(first, places[0]), "summary_upto": places[1]}
    update_thread(connection, given.thread_id, **values)


def save_decision(
    connection: Connection,
    request_id: str,
    *,
    config: JsonDict | None,
    state: JsonDict | None,
    hook_error: str | None,
) -> None:
    """Stores what before_turn decided; None leaves a field as it is. Raises TurnNotFound."""
    given = {"config": config, "state": state, "before_turn_hook_error": hook_error}
    values = {name: value for name, value in given.items() if value is not None}
    lock_turn(connection, request_id)
    if values:
        update_turn(connection, request_id, **values)


def merge_state(connection: Connection, request_id: str, patch: JsonDict) -> None:
    """Sets the keys of `patch` in the hooks' state; other keys stay. Raises TurnNotFound."""
    turn = lock_turn(connection, request_id)
    update_turn(connection, request_id, state={**(turn.state or {}), **patch})


def _transcript(connection: Connection, thread_id: str, extent: tuple[int, int, int]) -> list[Message]:
    position, first, last = extent
    chosen = {"thread": thread_id, "position": position, "folded_from": first, "folded_upto": last}
    transcript = [
        Message(message_id, role, parts, of_request, metadata or {})
        for message_id, role, parts, of_request, metadata in connection.execute(_TRANSCRIPT, chosen)
    ]
    for message in transcript:
        check_parts(message.parts, "message", message.id)
    return transcript


def _facts(connection: Connection, request_id: str) -> AnyRow:
    row = connection.execute(_FACTS, {"turn": request_id}).one_or_none()
    if row is None:
        raise TurnNotFound(request_id)
    return row
