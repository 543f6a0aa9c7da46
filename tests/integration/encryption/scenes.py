"""One turn of each kind. A scene says which words must be in Temporal, encrypted; no other may be there at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from everturn import Principal, Turn
from everturn.testing import ModelError, Reply, ScriptedModel, System, call
from tests.integration.encryption.canaries import Canaries

PATIENCE = 30.0


def SCRIPT(word: Canaries) -> ScriptedModel:  # noqa: N802 - stands for a constant
    return ScriptedModel(
        when={
            "Messages:": [word("summary")] * 3,
            "tools:": [
                Reply(word("step_text"), (call("lookup", note=word("tool_input")), call("broken", note="x"))),
                Reply(word("answer"), reasoning=word("reasoning")),
            ],
            "approved:": [call("pay", note=word("asked_input")), "Paid."],
            "denied:": [call("pay", note="no"), "Not paid."],
            "client:": [[call("locate", note=word("client_input")), call("locate", note="b")], "There."],
            "cancelled:": [call("slow", note=word("slow_input"))],
            "structured:": '{"verdict": "' + word("output") + '"}',
            "refused:": ModelError(400, f"the provider says {word('provider_error')}"),
            "retried:": [ModelError(500, word("retried_error"), retry_after=0.1), "After all."],
            "broken stream:": ModelError(after=word("partial_text"), message=word("stream_error"), code="fatal"),
            "first:": [call("slow", note="first")],
            "plain:": word("plain_answer"),
            "retried later:": [ModelError(500, word("retried_error"), retry_after=1.0), "After all."],
            "long:": ["yes"] * 4,
            "Continue.": word("continued_answer"),
        }
    )


@dataclass(frozen=True)
class Scene:
    """status: how the turn ends. shown: roles whose words Temporal keeps, encrypted. events: kinds of history events
    that must occur, so that the scene tests what it says."""

    play: Callable[[System, Canaries, str], Awaitable[Turn]]
    status: str
    shown: frozenset[str]
    events: frozenset[str] = frozenset()


async def submit(system: System, words: str, thread: str, agent: str = "clerk") -> Turn:
    return await system.chat.submit(thread, words, agent=agent)


async def first_chunk(turn: Turn, kind: str) -> str:
    """Waits for a chunk; its tool call's id."""
    async for chunk in turn.stream():
        if chunk.type == kind:
            return str(chunk.data.get("toolCallId"))
    raise AssertionError(f"the stream ended without {kind}")


async def tools(system: System, word: Canaries, thread: str) -> Turn:
    return await system.chat.submit(
        thread,
        f"tools: {word('user_text')}",
        agent="clerk",
        body={"secret": word("body")},
        metadata={"note": word("metadata")},
        principal=Principal("user-1", f"{word('email')}@example.com", metadata={"k": word("principal_metadata")}),
    )


async def approved(system: System, word: Canaries, thread: str) -> Turn:
    turn = await submit(system, "approved: go", thread)
    waiting = await first_chunk(turn, "tool-approval-request")
    unfit = {"note": word("unfit_input"), word("unfit_field"): 1}
    try:
        await system.chat.approve(turn.request_id, waiting, unfit)
    except ValueError as error:
        assert word("unfit_field") in str(error)
    assert await system.chat.approve(turn.request_id, word("unknown_call")) == "not_found"
    assert await system.chat.approve(turn.request_id, waiting, {"note": word("approved_input")}) == "accepted"
    return turn


async def denied(system: System, word: Canaries, thread: str) -> Turn:
    turn = await submit(system, "denied: go", thread)
    waiting = await first_chunk(turn, "tool-approval-request")
    assert await system.chat.deny(turn.request_id, waiting, word("denial")) == "accepted"
    return turn


async def client_tools(system: System, word: Canaries, thread: str) -> Turn:
    turn = await submit(system, "client: go", thread)
    await first_chunk(turn, "finish-step")
    pending = await system.chat.pending(thread)
    while len(pending) < 2:
        pending = await system.chat.pending(thread)
    one, two = (waiting.tool_call_id for waiting in pending)
    await system.chat.submit_tool_result(turn.request_id, one, {"at": word("client_output")})
    await system.chat.submit_tool_result(turn.request_id, two, error=word("client_error"))
    return turn


async def cancelled(system: System, word: Canaries, thread: str) -> Turn:
    turn = await submit(system, "cancelled: go", thread)
    await first_chunk(turn, "data-tool-progress")
    assert await turn.cancel(word("cancel_reason")) == "cancelled"
    return turn


async def queued(system: System, word: Canaries, thread: str) -> Turn:
    first = await submit(system, "first: go", thread)
    await first_chunk(first, "data-tool-progress")
    second = await submit(system, f"plain: {word('queued_text')}", thread)
    await first_chunk(second, "data-queued")
    await first.cancel()
    return second


async def continued(system: System, word: Canaries, thread: str) -> Turn:
    await (await submit(system, f"plain: {word('earlier_text')}", thread)).result(PATIENCE)
    return await system.chat.continue_last_turn(thread, body={"secret": word("continued_body")})


async def compacted(system: System, word: Canaries, thread: str) -> Turn:
    for _ in range(4):
        await (await submit(system, f"long: {word('long_text')} " + "la " * 120, thread, "forgetful")).result(PATIENCE)
    return await submit(system, "long: last", thread, "forgetful")


async def large(system: System, word: Canaries, thread: str) -> Turn:
    return await submit(system, f"{'x ' * 200_000} plain: {word('large_text')}", thread)


def _says(words: str, role: str = "", agent: str = "clerk") -> Callable[[System, Canaries, str], Awaitable[Turn]]:
    async def play(system: System, word: Canaries, thread: str) -> Turn:
        return await submit(system, f"{words} {word(role) if role else 'go'}", thread, agent)

    return play


def _scene(
    play: Callable[[System, Canaries, str], Awaitable[Turn]], status: str, *shown: str, events: tuple[str, ...] = ()
) -> Scene:
    return Scene(play, status, frozenset(shown), frozenset(events))


SCENES = {
    "tools": _scene(
        *(tools, "completed", "user_text", "body", "metadata", "email", "principal_metadata"),
        *("tool_input", "step_text", "answer"),
        events=("ACTIVITY_TASK_COMPLETED", "MARKER_RECORDED", "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES"),
    ),
    "approved": _scene(
        *(approved, "completed", "ask_reason", "asked_input", "approved_input", "unfit_input", "unfit_field"),
        events=("WORKFLOW_EXECUTION_UPDATE_ACCEPTED", "WORKFLOW_EXECUTION_UPDATE_COMPLETED", "TIMER_STARTED"),
    ),
    "denied": _scene(denied, "completed", "ask_reason", "denial"),
    "client_tools": _scene(client_tools, "completed", "client_input", "client_output", "client_error"),
    "cancelled": _scene(
        *(cancelled, "aborted", "slow_input", "cancel_reason"), events=("WORKFLOW_EXECUTION_SIGNALED",)
    ),
    "queued": _scene(queued, "completed", "queued_text", "plain_answer", events=("WORKFLOW_EXECUTION_SIGNALED",)),
    "continued": _scene(continued, "completed", "continued_body", "continued_answer"),
    "compacted": _scene(compacted, "completed"),
    "large": _scene(large, "completed", "plain_answer"),
    "structured": _scene(_says("structured:"), "completed", "output"),
    "blocked": _scene(_says("blocked:", "blocked_text"), "blocked", "blocked_text", "block_reason"),
    "refused": _scene(
        *(_says("refused:"), "error", "shown_error"), events=("ACTIVITY_TASK_FAILED", "WORKFLOW_EXECUTION_FAILED")
    ),
    "retried": _scene(_says("retried:"), "completed"),
    "broken_stream": _scene(_says("broken stream:"), "error", "shown_error"),
    "raising": _scene(_says("raise", agent="raising"), "error", "hook_error", "end_error"),
    "unknown_agent": _scene(_says("plain:", "unanswered", agent="nobody"), "error", "unanswered"),
}
