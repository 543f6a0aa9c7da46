"""Turns that failed before they could begin: the store may know nothing of them, and their hooks are asked all the
same."""

from __future__ import annotations

from typing import cast, get_args

from temporalio import activity

from everturn.activities.payloads import TurnInput
from everturn.activities.services import Services
from everturn.errors import BadInput, RequestConflict, UnknownAgent
from everturn.hooks.registry import RegisteredAgent
from everturn.store.records import Admission, TurnFacts
from everturn.turns import JsonDict, Principal, Trigger, Usage


def principal_of(turn: TurnInput) -> Principal | None:
    """Raises BadInput for one that this version does not understand."""
    if turn.principal is None:
        return None
    try:
        fields: JsonDict = {**turn.principal, "roles": tuple(turn.principal.get("roles", ()))}
        return Principal(**fields)
    except TypeError as error:
        raise BadInput(
            f"the principal of turn {turn.request_id!r} cannot be understood ({error}); "
            "give the client and the worker the same version of everturn"
        ) from error


def trigger_of(turn: TurnInput) -> Trigger:
    """Raises BadInput for one that this version does not know."""
    if turn.trigger not in get_args(Trigger):
        raise BadInput(
            f"turn {turn.request_id!r} has the trigger {turn.trigger!r}, which this worker does not know; "
            "give the client and the worker the same version of everturn"
        )
    return cast(Trigger, turn.trigger)


async def record(services: Services, turn: TurnInput) -> None:
    """Puts the turn into the store without its message, for `finish` to end it. Raises RequestConflict if its id is
    another turn's."""
    agent = _agent(services, turn.agent)
    info = activity.info()
    admission = Admission(
        request_id=turn.request_id,
        thread_id=turn.thread_id,
        agent=turn.agent,
        digest=turn.digest,
        policy="queue",
        trigger=_known_trigger(turn),
        submitted_at=info.scheduled_time.timestamp(),
        asked_at=info.scheduled_time.timestamp(),
        run_id=info.workflow_run_id or "",
        body=turn.body,
        principal=_known_principal(turn),
        tenant_id=turn.tenant_id,
        manifest=agent.manifest if agent else None,
        withdrawn=True,
    )
    if (await services.store.begin(admission)).outcome == "conflict":
        raise RequestConflict(turn.request_id)


def facts_of(turn: TurnInput) -> TurnFacts:
    """What hooks are told of a turn that the store cannot tell anything about."""
    return TurnFacts(
        request_id=turn.request_id,
        thread_id=turn.thread_id,
        agent=turn.agent,
        trigger=_known_trigger(turn),
        status="error",
        body=turn.body,
        principal=_known_principal(turn) or Principal(),
        tenant_id=turn.tenant_id,
        manifest={},
        config={},
        state={},
        steps=0,
        usage=Usage(),
    )


def _agent(services: Services, name: str) -> RegisteredAgent | None:
    try:
        return services.agents.get(name)
    except UnknownAgent:
        return None


def _known_principal(turn: TurnInput) -> Principal | None:
    try:
        return principal_of(turn)
    except BadInput:  # the turn failed over it, and says so
        return None


def _known_trigger(turn: TurnInput) -> Trigger:
    return cast(Trigger, turn.trigger) if turn.trigger in get_args(Trigger) else "submit"
