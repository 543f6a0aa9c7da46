"""The commands that are one client call each."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

from everturn.checks import shown
from everturn.errors import BadInput
from everturn.turns import JsonDict, Principal
from everturn.worker.cli.following import exit_code_of, follow
from everturn.worker.cli.hook_tables import hooks_text
from everturn.worker.cli.options import Places
from everturn.worker.cli.running import DONE, TURN_FAILED
from everturn.worker.cli.tables import messages_text, turn_text, turns_text
from everturn.worker.cli.viewers import harmless, make_viewer

if TYPE_CHECKING:
    from everturn.client.chat import ChatClient

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Request:
    """What `everturn submit` was asked to send. detach: return as soon as the turn is accepted."""

    thread_id: str
    message: str
    agent: str
    request_id: str | None = None
    policy: str = "queue"
    body: str | None = None
    user: str | None = None
    detach: bool = False


@asynccontextmanager
async def connected(places: Places) -> AsyncGenerator[ChatClient]:
    """A client for the places that the options, the environment and the defaults name."""
    from everturn.client.chat import ChatClient

    settings = places.settings()
    async with await ChatClient.connect(
        target=settings.target,
        namespace=settings.namespace,
        task_queue=settings.task_queue,
        store=settings.store,
        web_ui=settings.web_ui,
    ) as chat:
        yield chat


async def submit(places: Places, request: Request, as_json: bool) -> int:
    message = sys.stdin.read() if request.message == STANDARD_INPUT else request.message
    body = json_object(request.body, "--body")
    async with connected(places) as chat:
        turn = await chat.submit(
            request.thread_id,
            message,
            agent=request.agent,
            request_id=request.request_id,
            body=body,
            principal=Principal(id=request.user) if request.user else None,
            policy=request.policy,
        )
        if request.detach:
            accepted = {"request_id": turn.request_id, "thread_id": turn.thread_id, "accepted": turn.accepted}
            print_text(json.dumps(accepted) if as_json else turn.request_id)
            return DONE
        if as_json:
            result = await turn.result()
            print_text(json.dumps(result.as_json(), ensure_ascii=False))
            return DONE if result.ok else TURN_FAILED
        return await follow(chat, turn.request_id, make_viewer())


async def stream(places: Places, request_id: str, after: int, as_json: bool) -> int:
    async with connected(places) as chat:
        viewer = make_viewer(as_json)
        with viewer:
            end = None
            async for chunk in chat.turn(request_id).stream(after=after):
                viewer.show(chunk)
                end = chunk.type
        return exit_code_of(end)


async def cancel(places: Places, request_id: str, reason: str, as_json: bool) -> int:
    async with connected(places) as chat:
        outcome = await chat.cancel_chat(request_id, reason=reason)
    print_text(json.dumps({"request_id": request_id, "outcome": outcome}) if as_json else outcome.replace("_", " "))
    return TURN_FAILED if outcome == "not_found" else DONE


async def inspect(places: Places, request_id: str, as_json: bool, *, hooks: bool = False) -> int:
    """hooks: only what the hooks did, but that in full."""
    async with connected(places) as chat:
        info = await chat.inspect(request_id)
    if as_json:
        content = [asdict(trace) for trace in info.hook_traces] if hooks else info.as_json()
        print_text(json.dumps(content, ensure_ascii=False))
    else:
        print_text(hooks_text(info) if hooks else turn_text(info))
    return DONE


async def turns(places: Places, thread_id: str | None, status: str | None, limit: int, as_json: bool) -> int:
    async with connected(places) as chat:
        found = await chat.list_turns(thread_id=thread_id, status=status, limit=limit)
    print_text(json.dumps([asdict(t) for t in found], ensure_ascii=False) if as_json else turns_text(found))
    return DONE


async def messages(places: Places, thread_id: str, as_json: bool) -> int:
    async with connected(places) as chat:
        found = await chat.messages(thread_id)
    print_text(json.dumps([asdict(m) for m in found], ensure_ascii=False) if as_json else messages_text(found))
    return DONE


def json_object(text: str | None, option: str) -> JsonDict | None:
    """The value of an option that is a JSON object. Raises BadInput."""
    if text is None:
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{option} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput(f"{option} must be a JSON object, not {shown(value)}")
    return cast(JsonDict, value)


def print_text(text: str) -> None:
    """Prints text that comes from others, to a terminal without control characters."""
    sys.stdout.write((harmless(text) if sys.stdout.isatty() else text) + "\n")
