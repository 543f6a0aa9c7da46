"""Every hook point × every kind of fault × both origins: what the turn then does is the table of the contract.

All turns of the matrix run side by side in one system; each test looks at its own. For workers that are killed in a
hook see test_killed.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn import Agent, Hooks, Replace, Substitute, TurnConfig, TurnError
from everturn.errors import InvalidAgent
from everturn.hooks import configuring, registry
from everturn.hooks.decisions import StepConfig
from everturn.hooks.points import HOOK_POINTS
from everturn.testing import ModelError, ScriptedModel, TurnRun, call, run_turn, running
from tests.integration.hooks.authors import add, hooks

LONG = "x" * 200 * 1024
OVERSIZE: dict[str, Any] = {
    "before_turn": TurnConfig(system=LONG),
    "before_step": StepConfig(system=LONG),
    "before_tool_call": Substitute(LONG),
    "after_tool_call": Replace(LONG),
    "on_chat_error": TurnError("mine", LONG),
    "classify_chat_error": LONG,
}
"""An answer of the right type with 200 KB; the other points take no answer."""
FAULTS = ("raise", "hang", "oversize", "wrong_type", "cancelled")
ORIGINS = ("agent", "added")
CELLS = [(point, fault, origin) for point in HOOK_POINTS for fault in FAULTS for origin in ORIGINS]
AFTER_THE_TURN = ("on_chat_response", "on_turn_end")
Cell = tuple[str, str, str]
MODEL = ScriptedModel(
    when={
        "refuse": ModelError(400),
        "recover": [ModelError(503, retry_after=0.01), "Done."],
        "sum": [call("add", a=1, b=2), "Done."],
    }
)


def faulty(point: str, fault: str) -> Callable[..., Awaitable[Any]]:
    async def method(self: object, *arguments: object) -> object:
        if fault == "raise":
            raise ValueError("broken hook")
        if fault == "hang":
            await asyncio.Event().wait()
        if fault == "cancelled":
            raise asyncio.CancelledError
        return OVERSIZE.get(point, LONG) if fault == "oversize" else 5

    return method


async def note_the_stage(self: object, error: object, ctx: Any) -> None:
    ctx.log(ctx.stage)


def agent_of(cell: Cell) -> Agent:
    point, fault, origin = cell
    own: dict[str, Any] = {} if point == "on_chat_error" else {"on_chat_error": note_the_stage}
    method = {point: faulty(point, fault)}
    if origin == "agent":
        own |= method
    else:
        limit = {"timeout": 0.3} if fault == "hang" else {}
        own["hooks"] = [hooks("Faulty", **method, **limit)]
    given = {"name": "-".join(cell), "model": "openai/any", "system": "Old.", "tools": (add,), **own}
    made: Agent = type("Matrix", (Agent,), given)()
    return made


def message_for(point: str) -> str:
    return {"on_chat_error": "refuse", "classify_chat_error": "recover"}.get(point, "sum")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs(client: Client) -> AsyncIterator[dict[Cell, asyncio.Task[TurnRun]]]:
    """The turn of each cell, running or over."""
    at_once = asyncio.Semaphore(12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "AGENT_HOOK_TIMEOUT", 1.0)
        async with running(*map(agent_of, CELLS), model=MODEL, client=client) as system:

            async def run(cell: Cell) -> TurnRun:
                async with at_once:
                    return await system.run_turn(message_for(cell[0]), agent="-".join(cell), timeout=60)

            tasks = {cell: asyncio.create_task(run(cell)) for cell in CELLS}
            yield tasks
            await asyncio.gather(*tasks.values(), return_exceptions=True)


def outcome_of(cell: Cell) -> str:
    """How the trace calls it. An agent's own answer has no limit; where no answer is expected, any is wrong."""
    point, fault, origin = cell
    if fault == "oversize" and point in OVERSIZE:
        return "ok" if origin == "agent" else "oversize"
    return {"hang": "timeout", "oversize": "invalid", "wrong_type": "invalid"}.get(fault, "error")


@pytest.mark.parametrize("cell", CELLS, ids="-".join)
async def test_a_fault_has_the_outcome_of_the_table(runs: dict[Cell, asyncio.Task[TurnRun]], cell: Cell) -> None:
    point, _, origin = cell
    run = await runs[cell]
    hook, outcome = "agent" if origin == "agent" else "Faulty", outcome_of(cell)
    traces = run.hooks(point, hook)
    assert {trace.outcome for trace in traces} == {outcome}
    assert all(len((trace.message or "").encode()) <= 4096 for trace in traces)
    used = outcome == "ok"
    if outcome != "ok":
        assert all(trace.message for trace in traces)
        assert all(trace.changed == [] for trace in traces)
    check = {"before_turn": fails_the_turn, "before_step": fails_the_turn, "before_tool_call": refuses_the_call}.get(
        point
    )
    if check is not None and origin == "agent":
        check(run, point, used)
    elif point == "on_chat_error":
        shows_an_error(run, used)
    else:
        completes(run, cell, used)
    assert bool(run.info.before_turn_hook_error) is (point == "before_turn" and not used)


def fails_the_turn(run: TurnRun, point: str, used: bool) -> None:
    """An agent's own before_turn or before_step: stage `turn`, no model call; but its long answer counts."""
    if used:
        assert run.status == "completed"
        assert run.prompts[0]["messages"][0]["content"] == LONG
        return
    assert run.status == "error"
    assert run.result.error is not None
    assert run.result.error.type == "HookFailed"
    assert point in run.result.error.message
    assert run.prompts == []
    assert [line["message"] for line in run.hooks("on_chat_error", "agent")[0].logs] == ["turn"]


def refuses_the_call(run: TurnRun, point: str, used: bool) -> None:
    """An agent's own before_tool_call: a tool error result, and the turn goes on."""
    assert (run.status, run.text) == ("completed", "Done.")
    (made,) = run.info.tool_calls
    if used:
        assert (made.state, made.output) == ("substituted", LONG)
    else:
        assert (made.state, made.output) == ("error", None)
        assert point in (made.error or "")


def shows_an_error(run: TurnRun, used: bool) -> None:
    """on_chat_error: the original error, or the agent's own in its first 4 KB."""
    assert (run.status, run.chunks[-1].type) == ("error", "error")
    assert run.result.error is not None
    if used:
        assert run.result.error.type == "mine"
        assert 4000 < len(run.result.error.message.encode()) <= 4096
    else:
        assert run.result.error.type == "bad_request"


def completes(run: TurnRun, cell: Cell, used: bool) -> None:
    """Fails open: the turn is as it would have been without the hook. After the turn there are three tries."""
    point, _, origin = cell
    assert (run.status, run.text, run.result.stop_reason) == ("completed", "Done.", "end_turn")
    assert run.prompts[0]["messages"][0]["content"] == "Old."
    if point == "classify_chat_error":
        assert run.info.attempts_failed == 1
        return
    (made,) = run.info.tool_calls
    replaced = point == "after_tool_call" and used
    assert (made.state, made.output) == ("done", LONG if replaced else 3)
    name = "agent" if origin == "agent" else "Faulty"
    per_point = {"before_turn": 1, "before_tool_call": 1, "after_tool_call": 1, **dict.fromkeys(AFTER_THE_TURN, 3)}
    assert len(run.hooks(point, name)) == per_point.get(point, 2)


async def test_a_hook_that_hangs_over_a_chunk_is_a_timeout_when_its_step_is_over_whatever_its_limit(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "AGENT_HOOK_TIMEOUT", 60.0)
    agent = type("Hangs", (Agent,), {"name": "a", "model": "openai/any", "on_chunk": faulty("on_chunk", "hang")})()
    run = await run_turn(agent, "hi", model="Done.", client=client)
    (trace,) = run.hooks("on_chunk")
    assert (run.text, trace.outcome) == ("Done.", "timeout")


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raise", "ValueError: no session"),
        ("hang", "took longer than 0.5 s"),
        ("wrong_type", "returned int"),
        ("cancelled", "CancelledError"),
    ],
)
async def test_a_fault_in_configure_session_fails_the_worker_start_and_names_the_agent(
    client: Client, monkeypatch: pytest.MonkeyPatch, fault: str, said: str, plain: bool
) -> None:
    monkeypatch.setattr(configuring, "SESSION_TIMEOUT", 0.5)
    released = asyncio.Event()

    def act() -> Any:
        if fault == "raise":
            raise ValueError("no session")
        if fault == "cancelled":
            raise asyncio.CancelledError
        return 5

    async def configure_async(self: object, session: object) -> Any:
        if fault == "hang":
            await released.wait()
        return act()

    def configure_plain(self: object, session: object) -> Any:
        return released.wait() if fault == "hang" else act()

    method = configure_plain if plain else configure_async
    agent = type("Broken", (Agent,), {"name": "broken", "model": "openai/any", "configure_session": method})()
    with pytest.raises(InvalidAgent, match=f"'broken': configure_session.*{said}"):
        await run_turn(agent, "hi", model="Hi.", client=client)


def test_the_matrix_has_every_point_of_the_agents_and_of_added_hooks() -> None:
    assert {point for point, _, _ in CELLS} == {
        name for name in vars(Hooks.__mro__[1]) if name.startswith(("before_", "after_", "on_", "classify_"))
    }
