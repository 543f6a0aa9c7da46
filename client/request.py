"""What an application asks for, checked and made ready to be sent."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from everturn.activities.payloads import TurnInput
from everturn.checks import check_count, check_text, shown
from everturn.errors import BadInput, MessageTooLarge
from everturn.hooks.client_tools import client_tool_specs
from everturn.ids import MAX_ID_LENGTH, check_id, new_request_id
from everturn.messages import INLINE_MESSAGE_BYTES, dump_json, json_size, text_of, user_parts
from everturn.policies import policy_text
from everturn.turns import STATUSES, JsonDict, Principal

MAX_SCHEDULE_ID = MAX_ID_LENGTH - len("-2026-01-01T00:00:00Z")
"""The request ids of a schedule's turns are its own id and the time that Temporal adds."""
MAX_BODY_BYTES = 256 * 1024
"""body, metadata and principal travel through Temporal's history with the turn."""
MAX_SENT_BYTES = 1_200_000
"""Of all that travels with a turn, in ASCII; Temporal allows 2 MiB, of which an encrypting codec needs a part."""
MAX_LISTED = 1_000
"""Turns in one list."""
MAX_FACT_BYTES = 1024
"""An e-mail address or a role is a name, no text."""
MAX_REASON_BYTES = 64 * 1024
"""Reasons and errors that a caller sends along; what is shown of them is shorter."""


def make_input(
    thread_id: str,
    message: object,
    *,
    agent: str,
    request_id: str | None,
    body: Mapping[str, Any] | None,
    principal: Principal | None,
    tenant_id: str | None,
    policy: object,
    metadata: Mapping[str, Any] | None,
    client_tools: Sequence[Mapping[str, Any]],
) -> TurnInput:
    """Raises BadInput or MessageTooLarge, naming the value that cannot be used."""
    turn = TurnInput(
        request_id=check_id(request_id, "request_id") if request_id is not None else new_request_id(),
        thread_id=check_id(thread_id, "thread_id"),
        agent=check_id(agent, "agent"),
        digest="",
        parts=user_parts(message),
        policy=policy_text(policy),
        message_metadata=json_object(metadata, "metadata") or {},
        body=json_object(body, "body"),
        principal=_principal(principal),
        tenant_id=check_id(tenant_id, "tenant_id") if tenant_id is not None else None,
        client_tools=client_tool_specs(client_tools),
    )
    return dataclasses.replace(turn, digest=_digest(turn))


def make_continuation(
    thread_id: str,
    *,
    agent: str,
    request_id: str | None,
    body: Mapping[str, Any] | None,
    principal: Principal | None,
    tenant_id: str | None,
    client_tools: Sequence[Mapping[str, Any]],
) -> TurnInput:
    """A turn without a message of its own. Raises BadInput."""
    turn = TurnInput(
        request_id=check_id(request_id, "request_id") if request_id is not None else new_request_id(),
        thread_id=check_id(thread_id, "thread_id"),
        agent=check_id(agent, "agent"),
        digest="",
        trigger="continue",
        body=json_object(body, "body"),
        principal=_principal(principal),
        tenant_id=check_id(tenant_id, "tenant_id") if tenant_id is not None else None,
        client_tools=client_tool_specs(client_tools),
    )
    return dataclasses.replace(turn, digest=_digest(turn))


def check_schedule_id(value: object) -> str:
    """Raises BadInput for an id whose turns would have ids that are too long."""
    schedule_id = check_id(value, "schedule_id")
    if len(schedule_id) > MAX_SCHEDULE_ID:
        raise BadInput(f"schedule_id must have 1 to {MAX_SCHEDULE_ID} characters, not {len(schedule_id)}")
    return schedule_id


def make_scheduled(
    thread_id: str,
    message: object,
    *,
    agent: str,
    body: Mapping[str, Any] | None,
    principal: Principal | None,
    tenant_id: str | None,
    policy: object,
    metadata: Mapping[str, Any] | None,
) -> TurnInput:
    """A turn without a request id: each firing of its schedule has one of its own. Raises BadInput, MessageTooLarge."""
    turn = make_input(
        thread_id,
        message,
        agent=agent,
        request_id=None,
        body=body,
        principal=principal,
        tenant_id=tenant_id,
        policy=policy,
        metadata=metadata,
        client_tools=(),
    )
    size = _message_size(turn)
    if size > INLINE_MESSAGE_BYTES:
        raise MessageTooLarge(size, INLINE_MESSAGE_BYTES, "a schedule keeps its message in Temporal")
    turn = dataclasses.replace(turn, request_id="", trigger="scheduled")
    return dataclasses.replace(turn, digest=_digest(turn))


def summary(turn: TurnInput, *, previews: bool) -> str:
    """The title of the turn in the Web UI: thread and first words."""
    words = " ".join(text_of(turn.parts or []).split()) if previews else ""
    title = f"{turn.thread_id} · {words}" if words else turn.thread_id
    return title if len(title) <= 120 else title[:119] + "…"


def details(turn: TurnInput, *, previews: bool) -> str:
    """What the Web UI shows of a turn before it runs."""
    lines = [f"agent: {turn.agent}", f"thread: {turn.thread_id}", f"request: {turn.request_id}"]
    if turn.principal and turn.principal.get("id"):
        lines.append(f"user: {turn.principal['id']}")
    if previews:
        lines.append(f"> {' '.join(text_of(turn.parts or []).split())[:300]}")
    return "\n\n".join(lines)


def check_sent(turn: TurnInput) -> None:
    """Raises BadInput, naming the largest part, for a turn that Temporal would not take."""
    sizes = _sent_sizes(turn)
    total = sum(sizes.values())
    if total > MAX_SENT_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise BadInput(
            f"the turn has {total:,} bytes as it is sent to Temporal; the limit is {MAX_SENT_BYTES:,}, and {largest} "
            f"alone has {sizes[largest]:,}: shorten it, or keep the data elsewhere and send a reference"
        )


def fits_inline(turn: TurnInput) -> bool:
    """Whether the message may travel with the turn."""
    return _message_size(turn) <= INLINE_MESSAGE_BYTES and sum(_sent_sizes(turn).values()) <= MAX_SENT_BYTES


def _sent_sizes(turn: TurnInput) -> dict[str, int]:
    parts = {"the message": turn.parts, "metadata": turn.message_metadata, "client_tools": turn.client_tools}
    parts |= {"body": turn.body, "principal": turn.principal}
    return {name: len(json.dumps(value)) for name, value in parts.items()}


def check_inline(turn: TurnInput) -> None:
    """For a client that has Temporal alone to carry a message. Raises MessageTooLarge."""
    size = _message_size(turn)
    if size > INLINE_MESSAGE_BYTES:
        raise MessageTooLarge(size, INLINE_MESSAGE_BYTES, "without a store that is the limit; connect with store=…")


def _message_size(turn: TurnInput) -> int:
    return json_size(turn.parts or [], "the message")


def _digest(turn: TurnInput) -> str:
    asked = [
        turn.thread_id,
        turn.agent,
        turn.parts,
        turn.message_metadata,
        turn.body,
        turn.principal,
        turn.tenant_id,
        turn.trigger,
        turn.client_tools,
    ]
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def json_object(value: object, what: str) -> JsonDict | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise BadInput(f"{what} must be a JSON object, not {shown(value)}")
    text = dump_json(dict(cast(Mapping[object, object], value)), what)
    if len(text.encode()) > MAX_BODY_BYTES:
        raise BadInput(f"{what} has {len(text.encode()):,} bytes as JSON; the limit is {MAX_BODY_BYTES:,}")
    result: JsonDict = json.loads(text)
    return result


def _principal(principal: object) -> JsonDict | None:
    if principal is None:
        return None
    if not isinstance(principal, Principal):
        raise BadInput(f"principal must be an everturn.Principal, not {shown(principal)}")
    return json_object(
        {
            "id": check_id(principal.id, "principal.id") if principal.id is not None else None,
            "email": _text_or_none(principal.email, "principal.email"),
            "is_anonymous": _flag(principal.is_anonymous, "principal.is_anonymous"),
            "roles": _roles(principal.roles),
            "metadata": json_object(principal.metadata, "principal.metadata") or {},
        },
        "principal",
    )


def reason_text(value: object, what: str) -> str | None:
    """A reason that a caller gives. Raises BadInput."""
    return check_text(value, what, MAX_REASON_BYTES) if value is not None else None


def check_listing(thread_id: object, status: object, limit: object) -> None:
    """Raises BadInput for what no list of turns can be asked for."""
    if thread_id is not None:
        check_id(thread_id, "thread_id")
    if status is not None and status not in STATUSES:
        raise BadInput(f"status {shown(status)} does not exist; use one of {', '.join(STATUSES)}")
    check_count(limit, "limit", least=1, most=MAX_LISTED)


def _text_or_none(value: object, what: str) -> str | None:
    return check_text(value, what, MAX_FACT_BYTES) if value is not None else None


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{what} must be True or False, not {shown(value)}")
    return value


def _roles(roles: object) -> list[str]:
    if not isinstance(roles, list | tuple | set | frozenset):
        raise BadInput(f"principal.roles must be a tuple of strings, not {shown(roles)}")
    return [check_text(role, "principal.roles", MAX_FACT_BYTES) for role in cast(Iterable[object], roles)]
