"""Runs one hook: in time, with its answer checked, and with a record of what happened."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_core import to_json

from everturn.checks import said, shown
from everturn.hooks.calling import invoke
from everturn.hooks.contexts import HookContext
from everturn.hooks.decisions import Ask, Block, Config
from everturn.hooks.hook import HookTrouble
from everturn.hooks.log import HookLog, cut
from everturn.hooks.registry import BoundHook
from everturn.turns import JsonDict, TurnError

Outcome = Literal["ok", "error", "timeout", "oversize", "invalid"]
MAX_TRACE_MESSAGE = 2000


class HookFailed(Exception):
    """A hook whose failure the turn must not ignore. outcome: error, timeout, oversize or invalid."""

    def __init__(
        self, hook: str, point: str, outcome: Outcome, message: str, cause: BaseException | None = None
    ) -> None:
        self.hook, self.point, self.outcome = hook, point, outcome
        self.cause = cause
        super().__init__(f"{point} of hook {hook!r} failed ({outcome}): {message}")


@dataclass(frozen=True, slots=True)
class HookRun:
    """What one run of one hook did."""

    hook: BoundHook
    outcome: Outcome
    value: Any = None
    message: str | None = None
    duration_ms: int = 0
    logs: list[JsonDict] = field(default_factory=list[JsonDict])
    cause: BaseException | None = None

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    def failure(self) -> HookFailed:
        return HookFailed(self.hook.name, self.hook.point, self.outcome, self.message or "", self.cause)


def log_for(hook: BoundHook) -> HookLog:
    tag = hook.owner.log_tag if hook.owner else None
    return HookLog(tag or f"hook:{hook.point}:{hook.name}")


async def run_hook(
    hook: BoundHook, log: HookLog, *args: object, answers: tuple[type, ...], executor: Executor
) -> HookRun:
    """Calls `hook` with `args`. Nothing that the hook does escapes: a raise (CancelledError included), a timeout, an
    answer of another type or size becomes the run's outcome. Only the cancellation of the caller passes through."""
    started = time.monotonic()
    outcome: Outcome = "ok"
    value, message, cause = None, None, None
    task = asyncio.ensure_future(invoke(hook.function, executor, *args))
    try:
        done, _ = await asyncio.wait({task}, timeout=hook.timeout)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        outcome, message = "timeout", f"took longer than {hook.timeout:g} s"
    elif task.cancelled():
        outcome, message = "error", "raised CancelledError"
    elif (cause := task.exception()) is not None:
        outcome, message = _trouble(cause)
    else:
        value = task.result()
        outcome, message = _check_answer(hook, value, answers)
    elapsed = round((time.monotonic() - started) * 1000)
    return HookRun(hook, outcome, value if outcome == "ok" else None, message, elapsed, list(log.lines), cause)


def _trouble(cause: BaseException) -> tuple[Outcome, str]:
    if isinstance(cause, HookTrouble):
        return cause.outcome, cut(str(cause), MAX_TRACE_MESSAGE)
    return "error", cut(f"{type(cause).__name__}: {said(cause)}", MAX_TRACE_MESSAGE)


def _check_answer(hook: BoundHook, value: object, answers: tuple[type, ...]) -> tuple[Outcome, str | None]:
    if value is None:
        return "ok", None
    if not isinstance(value, answers):
        expected = ", ".join(kind.__name__ for kind in answers)
        return "invalid", f"returned {type(value).__name__}; expected {expected or 'nothing'} or None"
    if isinstance(value, TurnError) and not (_is_text(value.type) and _is_text(value.message)):
        return "invalid", f"returned a TurnError of {shown(value.type)} and {shown(value.message)}; both must be texts"
    try:
        size = _size(value)
    except Exception as error:  # an answer may hold objects of any class
        return "invalid", cut(f"its answer has no JSON form: {said(error)}", MAX_TRACE_MESSAGE)
    limit = hook.owner.max_return_bytes if hook.owner else None
    if limit is not None and size > limit:
        return "oversize", f"returned {size:,} bytes; the limit is {limit:,}"
    return "ok", None


def _size(value: object) -> int:
    """Bytes of an answer as JSON. Texts may have halves of characters in them: a refusal counts, however it is put."""
    texts = _texts(value)
    if texts is not None:
        return sum(len(text.encode(errors="replace")) for text in texts)
    if isinstance(value, Config):
        return len(json.dumps(value.as_json(), ensure_ascii=False).encode())
    return len(to_json(value))


def _texts(value: object) -> list[str] | None:
    """All of an answer that consists of texts; None for other answers."""
    if isinstance(value, Block | Ask):
        return [value.reason]
    if isinstance(value, TurnError):
        return [value.type, value.message]
    return [str(value)] if isinstance(value, str | Exception) else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def edited(before: dict[str, Any], context: HookContext) -> dict[str, Any]:
    """The editable fields of a context that the hook changed in place."""
    changed = {name: getattr(context, name) for name in context.editable if name in before}
    return {name: value for name, value in changed.items() if value != before[name]}
