"""One run of one hook: whatever the author's code does becomes an outcome."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import pytest_asyncio

from everturn import Block, Hooks, TurnConfig
from everturn.hooks.log import HookLog
from everturn.hooks.registry import BoundHook
from everturn.hooks.runner import HookRun, run_hook

Run = Callable[..., Any]


@pytest_asyncio.fixture(loop_scope="session")
async def run() -> AsyncIterator[Run]:
    with ThreadPoolExecutor(2) as threads:

        async def run_it(function: Callable[..., Any], *args: object, **options: Any) -> HookRun:
            owner = type("Added", (Hooks,), options)() if options.pop("added", True) else None
            hook = BoundHook("Added", "before_turn", function, owner)
            return await run_hook(hook, HookLog(), *args, answers=(TurnConfig, Block, Exception), executor=threads)

        yield run_it


async def test_async_and_plain_functions_answer_alike(run: Run) -> None:
    async def asynchronous(ctx: object) -> Block:
        return Block("no")

    assert (await run(asynchronous, 1)).value == Block("no")
    assert (await run(lambda ctx: Block("no"), 1)).value == Block("no")


async def test_a_plain_function_runs_in_a_thread_with_the_callers_context_variables(run: Run) -> None:
    variable = contextvars.ContextVar("variable", default="default")
    variable.set("mine")
    seen: list[Any] = []
    await run(lambda ctx: seen.append((threading.current_thread(), variable.get())), 1)
    assert seen[0][0] is not threading.main_thread()
    assert seen[0][1] == "mine"


async def test_a_plain_function_that_returns_an_awaitable_is_awaited(run: Run) -> None:
    async def later() -> Block:
        return Block("later")

    assert (await run(lambda ctx: later(), 1)).value == Block("later")


def raising(error: BaseException) -> Callable[[object], None]:
    def hook(ctx: object) -> None:
        raise error

    return hook


def raising_async(error: BaseException) -> Callable[[object], Any]:
    async def hook(ctx: object) -> None:
        raise error

    return hook


@pytest.mark.parametrize("make", [raising, raising_async])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (SystemExit(3), "sys.exit(3)"),
        (StopIteration(), "StopIteration"),
        (asyncio.CancelledError(), "CancelledError"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        (RecursionError("deep"), "RecursionError"),
    ],
)
async def test_whatever_a_hook_raises_is_an_error_outcome_at_once(
    run: Run, make: Callable[[BaseException], Any], error: BaseException, said: str
) -> None:
    async with asyncio.timeout(5):
        result = await run(make(error), 1)
    assert (result.outcome, result.value) == ("error", None)
    assert said in result.message


async def test_exit_inside_a_hook_does_not_end_the_process(run: Run) -> None:
    assert (await run(lambda ctx: sys.exit(), 1)).outcome == "error"


async def test_a_run_over_its_timeout_is_cut_off(run: Run) -> None:
    cancelled = asyncio.Event()

    async def hangs(ctx: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    result = await run(hangs, 1, timeout=0.05)
    assert result.outcome == "timeout"
    assert "0.05 s" in result.message
    await asyncio.wait_for(cancelled.wait(), 5)


async def test_a_hanging_thread_does_not_hold_the_turn(run: Run) -> None:
    release = threading.Event()
    try:
        async with asyncio.timeout(5):
            assert (await run(lambda ctx: release.wait(30), 1, timeout=0.05)).outcome == "timeout"
    finally:
        release.set()


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize("answer", [{"block": True}, "no", 1, Block, False])
async def test_an_answer_of_another_type_is_invalid(run: Run, answer: object, added: bool) -> None:
    result = await run(lambda ctx: answer, 1, added=added)
    assert result.outcome == "invalid"
    assert "expected TurnConfig, Block" in result.message


@pytest.mark.parametrize("added", [True, False])
async def test_an_answer_without_a_json_form_is_invalid(run: Run, added: bool) -> None:
    result = await run(lambda ctx: TurnConfig(metadata={"lock": threading.Lock()}), 1, added=added)
    assert result.outcome == "invalid"
    assert "JSON" in result.message


async def test_an_added_hooks_answer_may_have_128_kilobytes(run: Run) -> None:
    assert (await run(lambda ctx: TurnConfig(system="x" * 127 * 1024), 1)).ok
    over = await run(lambda ctx: TurnConfig(system="x" * 128 * 1024), 1)
    assert over.outcome == "oversize"
    assert "131,072" in over.message


async def test_an_agents_own_answer_has_no_size_limit(run: Run) -> None:
    assert (await run(lambda ctx: TurnConfig(system="x" * 200 * 1024), 1, added=False)).ok


async def test_an_exception_is_an_answer_where_the_point_takes_one(run: Run) -> None:
    assert (await run(lambda ctx: ValueError("sorry"), 1)).ok


async def test_cancelling_the_caller_stops_the_hook_and_passes_through(run: Run) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hangs(ctx: object) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task = asyncio.ensure_future(run(hangs, 1))
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(cancelled.wait(), 5)
