"""What an application asks for, checked and made ready to be sent."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from everturn.activities.payloads import TurnInput
from everturn.errors import BadInput
from everturn.hooks.client_tools import client_tool_specs
from everturn.ids import check_id, new_request_id
from everturn.messages import Part, dump_json, json_size, text_of, user_parts
from everturn.turns import POLICIES, JsonDict, Principal

MAX_BODY_BYTES = 256 * 1024
"""body, metadata and principal travel through Temporal's history with the turn."""


def make_input(
    thread_id: str,
    message: object,
    *,
    agent: str,
    request_id: str | None,
    body: Mapping[str, Any] | None,
    principal: Principal | None,
    tenant_id: str | None,
    policy: str,
    metadata: Mapping[str, Any] | None,
    client_tools: Sequence[Mapping[str, Any]],
) -> TurnInput:
    """Raises BadInput or MessageTooLarge, naming the value that cannot be used."""
    if policy not in POLICIES:
        raise BadInput(f"policy {policy!r} is unknown; use one of: {', '.join(sorted(POLICIES))}")
    turn = TurnInput(
        request_id=check_id(request_id, "request_id") if request_id is not None else new_request_id(),
        thread_id=check_id(thread_id, "thread_id"),
        agent=check_id(agent, "agent"),
        digest="",
        parts=user_parts(message),
        policy=policy,
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
        lines.append(f"> {' '.join(text_of(turn.parts or []).split())[:600]}")
    return "\n\n".join(lines)


def inline_size(parts: list[Part]) -> int:
    return json_size(parts, "the message")


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
        raise BadInput(f"{what} must be a JSON object, not {type(value).__name__}")
    text = dump_json(dict(value), what)  # pyright: ignore[reportUnknownArgumentType]
    if len(text.encode()) > MAX_BODY_BYTES:
        raise BadInput(f"{what} has {len(text.encode()):,} bytes as JSON; the limit is {MAX_BODY_BYTES:,}")
    result: JsonDict = json.loads(text)
    return result


def _principal(principal: object) -> JsonDict | None:
    if principal is None:
        return None
    if not isinstance(principal, Principal):
        raise BadInput(f"principal must be an everturn.Principal, not {type(principal).__name__}")
    return json_object(dataclasses.asdict(principal), "principal")
