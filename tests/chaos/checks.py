"""What must be true of a system once its worker has been killed and another one has gone on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus

from everturn import Chunk, TurnInfo
from everturn.turns import ToolCallInfo
from tests.chaos.stage import WAIT, Running, Stage

STARVED = "TMPRL1101"
"""The SDK's word for a workflow task that did not come to its turn for two seconds: a machine with too much to do."""
HOOKS_OF_A_TURN = ("before_turn", "on_chat_response", "on_turn_end")
HOOKS_OF_A_STEP = ("before_step", "on_step_finish")
HOOKS_OF_A_CALL = ("before_tool_call", "after_tool_call")


def shown(chunks: Sequence[Chunk]) -> str:
    """The text that a client shows in the end: without the attempts that were declared void."""
    void = {(c.data["step"], c.data["attempt"]) for c in chunks if c.type == "data-reset"}
    texts = [c.data["delta"] for c in chunks if c.type == "text-delta" and (c.step, c.attempt) not in void]
    return "".join(texts)


async def complaints(stage: Stage, extra: int) -> list[str]:
    """One sentence for each thing that is wrong. extra: model calls that the crash may have cost."""
    found: list[str] = []
    for running in stage.turns:  # first: the last hooks of a turn run after the end that its client sees
        found += [f"{running.mark}: {what}" for what in await _workflow(stage, running)]
    found += await _thread(stage)
    requests = 0
    for running in stage.turns:
        info = await running.turn.info()
        found += [f"{running.mark}: {what}" for what in await _turn(stage, running, info)]
        requests += len(_requests(stage, running)) - running.planned.requests
    if not 0 <= requests <= extra:
        found.append(f"{requests} more model calls than without a crash, {extra} allowed")
    return found


async def _thread(stage: Stage) -> list[str]:
    """One user message and one answer for each turn, in the order of submission; nobody holds the thread."""
    found: list[str] = []
    messages = await stage.chat.messages(stage.thread)
    expected: list[tuple[str, str]] = []
    roles = [(message.role, _owner(stage, message.id, message.text)) for message in messages]
    for running in stage.turns:
        expected.append(("user", running.turn.request_id))
        answer = ("assistant", running.turn.request_id)
        if answer in roles or not running.planned.begins:
            expected.append(answer)
    if roles != expected:
        found.append(f"the thread holds {roles}, expected {expected}")
    holder = await stage.store.running(stage.thread)
    if holder is not None:
        found.append(f"the thread is still held by {holder}")
    return found


def _owner(stage: Stage, message_id: str, text: str) -> str:
    for running in stage.turns:
        if running.turn.request_id in message_id or running.mark in text:
            return running.turn.request_id
    return message_id


async def _turn(stage: Stage, running: Running, info: TurnInfo) -> list[str]:
    planned = running.planned
    found: list[str] = []
    if info.turn.status != planned.status:
        found.append(f"status {info.turn.status}, expected {planned.status} ({info.turn.error})")
    replay = [chunk async for chunk in running.turn.stream()]
    if [chunk.seq for chunk in replay] != list(range(1, len(replay) + 1)) or not replay[-1].is_end:
        found.append("its stream has gaps or no end")
    if sum(chunk.is_end for chunk in replay) != 1:
        found.append("its stream has several ends")
    if running.seen != replay:
        found.append("the client that followed it saw another stream than the stored one")
    found += _answer(running, await _stored_text(stage, running), shown(replay))
    found += _effects(stage, running, info)
    return found + _hooks(stage, running, info)


async def _stored_text(stage: Stage, running: Running) -> str:
    result = await running.turn.result(WAIT)
    return result.text


def _answer(running: Running, stored: str, streamed: str) -> list[str]:
    expected, words = running.planned.answer, stored.split()
    right = not words or stored.startswith(expected) if running.planned.begins else words == expected.split()
    found = [] if right else [f"the stored answer is {stored!r}, expected {expected!r}"]
    if streamed != stored:
        found.append(f"the stream tells {streamed!r}, stored is {stored!r}")
    if running.planned.begins and words != [f"w{number:04d}" for number in range(1, len(words) + 1)]:
        found.append(f"words are doubled or missing in {stored!r}")
    return found


def _effects(stage: Stage, running: Running, info: TurnInfo) -> list[str]:
    """Each call took effect once; one that may not be repeated at most once, and `unknown` if nobody knows."""
    found: list[str] = []
    if len(info.tool_calls) != running.planned.calls:
        found.append(f"{len(info.tool_calls)} tool calls, expected {running.planned.calls}")
    effects = Counter(stage.effects())
    for call in info.tool_calls:
        mine = {key: n for (kind, key), n in effects.items() if kind == call.tool_name and _of(key, running, call)}
        count = sum(mine.values())
        if len(mine) > 1:
            found.append(f"{call.tool_name} ran under the keys {sorted(mine)}")
        if call.tool_name in ("charge", "transfer"):
            allowed, states = (0, 1) if call.state == "unknown" else (1, 1), ("done", "unknown")
        elif call.tool_name == "remember":
            allowed, states = (1, 3), ("done",)
        else:
            allowed, states = (0, 0), ("done",)
        if not allowed[0] <= count <= allowed[1] or call.state not in states:
            found.append(f"{call.tool_name} is {call.state} and took effect {count} times")
        if call.state == "unknown" and not _was_told(stage, running):
            found.append(f"the model was not told that the outcome of {call.tool_name} is unknown")
    return found


def _of(key: str, running: Running, call: ToolCallInfo) -> bool:
    request_id, *_, place = key.split(":")
    return (request_id, place) == (running.turn.request_id, call.tool_call_id)


def _was_told(stage: Stage, running: Running) -> bool:
    last = _requests(stage, running)[-1]["messages"]
    return any("unknown" in str(message["content"]) for message in last if message["role"] == "tool")


def _hooks(stage: Stage, running: Running, info: TurnInfo) -> list[str]:
    """Each hook ran for each of its visits, however often, always under that visit's key."""
    planned = running.planned
    if planned.agent != "watched":
        return []
    visits = dict.fromkeys(HOOKS_OF_A_TURN, 1)
    visits |= dict.fromkeys(HOOKS_OF_A_STEP, info.turn.steps) | dict.fromkeys(HOOKS_OF_A_CALL, planned.calls)
    if planned.status == "error":
        visits |= {"on_chat_error": 1, "before_step": 1}
    found: list[str] = []
    effects = set(stage.effects())
    for point, expected in visits.items():
        keys = {key for kind, key in effects if kind == f"hook:{point}" and key.startswith(running.turn.request_id)}
        if len(keys) != expected:
            found.append(f"{point} ran under the keys {sorted(keys)}, expected {expected} of them")
    return found


async def _workflow(stage: Stage, running: Running) -> list[str]:
    """It is closed, and no worker met code or history that it could not go on with."""
    wanted = WorkflowExecutionStatus.FAILED if running.planned.status == "error" else WorkflowExecutionStatus.COMPLETED
    status = await stage.closed(running)
    found = [] if status == wanted else [f"its workflow is {status.name if status else None}"]
    handle = stage.services.client.get_workflow_handle(running.turn.workflow_id)
    failed = [
        event.workflow_task_failed_event_attributes.failure.message
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]
    return found + [f"a workflow task failed: {message}" for message in failed if STARVED not in message]


def _requests(stage: Stage, running: Running) -> list[dict[str, list[dict[str, object]]]]:
    """The model calls of one turn: those whose newest user message is the turn's."""
    found: list[dict[str, list[dict[str, object]]]] = []
    for record in stage.services.model.requests:
        users = [message for message in record.body.get("messages", []) if message["role"] == "user"]
        if users and users[-1]["content"] == f"{running.planned.message} {running.mark}":
            found.append(record.body)
    return found
