"""What a running turn reads and decides: its facts, its prompt material, its configuration and state."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, bindparam, select

from everturn.errors import TurnNotFound
from everturn.messages import Message
from everturn.store.columns import AnyRow
from everturn.store.locks import lock_turn, update_turn
from everturn.store.records import PromptMaterial, TurnFacts
from everturn.store.rows import FACTS, facts_of
from everturn.store.steps import stored_steps
from everturn.store.tables import messages, turns
from everturn.turns import JsonDict

_FACTS: Final = select(*FACTS).where(turns.c.request_id == bindparam("turn"))
_TRANSCRIPT: Final = (
    select(messages.c.message_id, messages.c.role, messages.c.parts, messages.c.request_id, messages.c["metadata"])
    .where(
        messages.c.thread_id == bindparam("thread"),
        messages.c.position <= bindparam("position"),
        messages.c.hidden.is_(False),
    )
    .order_by(messages.c.position)
)


def load_turn(connection: Connection, request_id: str) -> TurnFacts:
    """Raises TurnNotFound."""
    return facts_of(_facts(connection, request_id))


def load_prompt(connection: Connection, request_id: str) -> PromptMaterial:
    """The visible transcript up to the turn's own message, without times, and its steps. Raises TurnNotFound."""
    row = _facts(connection, request_id)
    transcript = [
        Message(message_id, role, parts, of_request, metadata or {})
        for message_id, role, parts, of_request, metadata in connection.execute(
            _TRANSCRIPT, {"thread": row.thread_id, "position": row.prompt_position}
        )
    ]
    return PromptMaterial(facts_of(row), transcript, stored_steps(connection, request_id))


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


def _facts(connection: Connection, request_id: str) -> AnyRow:
    row = connection.execute(_FACTS, {"turn": request_id}).one_or_none()
    if row is None:
        raise TurnNotFound(request_id)
    return row
