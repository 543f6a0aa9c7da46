"""`before_turn` kept as text: in a file or in the store, for people who do not deploy code."""

from __future__ import annotations

import ast
import asyncio
import copy
import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict, Unpack
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError

from everturn.checks import shown
from everturn.errors import BadInput
from everturn.hooks.code.child import FIELDS, FUNCTION, declared
from everturn.hooks.code.fetching import Fetcher
from everturn.hooks.code.outbound import Outbound
from everturn.hooks.code.process import CodeEnd, CodeJob, run_code
from everturn.hooks.contexts import TurnContext
from everturn.hooks.decisions import Block, TurnConfig
from everturn.hooks.hook import HOOK_TIMEOUT, MAX_RETURN_BYTES, Hooks, HookTrouble, OnError, Order
from everturn.turns import JsonDict

MAX_SOURCE_BYTES: Final = 128 * 1024
MEMORY_MB: Final = 512
MIN_MEMORY_MB: Final = 64
"""Python itself and its libraries need this much."""
MAX_AT_ONCE: Final = 16
"""Processes of one hook; further turns wait within their time limit."""


class CodeOptions(TypedDict, total=False):
    """The options of CodeHooks."""

    name: str
    outbound: Iterable[str]
    timeout: float
    memory_mb: int
    on_error: OnError
    order: Order


class CodeHooks(Hooks):
    """What `TurnCode` and `StoredTurnCode` share: where code runs, and what it may reach and use.

    The text holds `before_turn(data, runtime)`, `def` or `async def`. data: messages, system, model, temperature, as a
    copy. runtime: user, tenant_id, agent_id, thread_id, model. It returns None, or a dict with only what changes of
    data's fields, or {"block": True, "reason": …}; editing `data` in place counts, too. It may call
    `log(message, data=None, level="info")` and `fetch(url, method="GET", headers=None, body=None, timeout=10)`.

    Each run has a Python process of its own, with the standard library, without the worker's environment and packages,
    limited in time, CPU and memory. This keeps faults and secrets apart; it is no boundary against hostile code.

    outbound: hosts that `fetch` may reach (see Outbound). timeout: seconds a run. memory_mb: megabytes a run.
    on_error: as for other hooks; a failing code leaves the turn as it was. Raises BadInput for a bad option.
    """

    log_tag: ClassVar[str | None] = f"[tool:hook:{FUNCTION}]"

    def __init__(
        self,
        *,
        name: str = "turn-code",
        outbound: Iterable[str] = (),
        timeout: float = HOOK_TIMEOUT,
        memory_mb: int = MEMORY_MB,
        on_error: OnError = "continue",
        order: Order | None = None,
    ) -> None:
        if memory_mb < MIN_MEMORY_MB:
            raise BadInput(f"turn code {name!r}: memory_mb must be {MIN_MEMORY_MB} or more, not {memory_mb!r}")
        self.name, self.timeout, self.on_error = name, timeout, on_error
        self.order = order or Order()
        self._outbound = Outbound(outbound)
        self._memory = memory_mb * 1024 * 1024
        self._places = WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]()

    async def run(self, source: str, ctx: TurnContext) -> TurnConfig | Block | None:
        """Runs a text for a turn. Raises HookTrouble."""
        data: JsonDict = {name: copy.deepcopy(getattr(ctx, name)) for name in FIELDS}
        job = CodeJob(source, data, _runtime(ctx), self.timeout, self._memory)
        place = self._places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MAX_AT_ONCE))
        async with place, Fetcher(self._outbound) as fetcher:
            end = await run_code(job, ctx, fetcher.serve)
        if end.outcome == "skipped":
            names = ", ".join(end.functions) or "none"
            ctx.log(f"skipped: the code declares no function {FUNCTION} (functions: {names})", level="warn")
            return None
        return _decision(end, ctx, data)


class TurnCode(CodeHooks):
    """A `before_turn` from a file (`path`, read once, when the worker starts) or a text (`source`).

    Raises BadInput if it cannot be read or is no Python.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        source: str | None = None,
        **options: Unpack[CodeOptions],
    ) -> None:
        super().__init__(**options)
        if (path is None) == (source is None):
            raise BadInput("TurnCode needs a path or a source, and not both")
        self.source = read_source(path) if path is not None else source or ""
        check_source(self.source, str(path) if path is not None else f"the source of TurnCode {self.label!r}")

    async def before_turn(self, ctx: TurnContext) -> TurnConfig | Block | None:
        return await self.run(self.source, ctx)


class StoredTurnCode(CodeHooks):
    """The `before_turn` that `everturn hooks set` put into the store for the agent; nothing if there is none.

    A turn keeps the version that was active when it began; in its traces the hook is named `turn-code@<version>`.
    """

    async def before_turn(self, ctx: TurnContext) -> TurnConfig | Block | None:
        """Never called as it is: the worker puts `run` with the turn's version in its place."""
        raise RuntimeError(f"the code of agent {ctx.agent!r} was not loaded from the store")


def read_source(path: str | os.PathLike[str]) -> str:
    """The text of a file. Raises BadInput."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # a path may have characters that no file system takes
        raise BadInput(f"the turn code {shown(str(path))} cannot be read: {error}") from error


def check_source(source: str, what: str) -> list[str]:
    """The functions that a text declares, without running it. Raises BadInput, naming `what`, if it is no Python."""
    size = len(source.encode(errors="replace"))
    if size > MAX_SOURCE_BYTES:
        raise BadInput(f"{what} has {size:,} bytes; the limit for turn code is {MAX_SOURCE_BYTES:,}")
    try:
        with warnings.catch_warnings(action="ignore"):
            return declared(ast.parse(source))
    except SyntaxError as error:
        raise BadInput(f"{what} is no valid Python: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadInput(f"{what} is no valid Python: {error or type(error).__name__}") from error


class _Answer(BaseModel):
    """What the code may return, besides the fields of a turn's configuration."""

    model_config = ConfigDict(extra="forbid")

    messages: list[dict[str, Any]] | None = None
    system: str | None = None
    model: str | None = None
    temperature: float | None = None
    block: StrictBool = False
    reason: str | None = None


def _runtime(ctx: TurnContext) -> JsonDict:
    return {
        "user": asdict(ctx.principal),
        "tenant_id": ctx.tenant_id,
        "agent_id": ctx.agent,
        "thread_id": ctx.thread_id,
        "model": ctx.model,
    }


def _decision(end: CodeEnd, ctx: TurnContext, data: JsonDict) -> TurnConfig | Block | None:
    """The code's answer as a hook's; its edits as edits of the context."""
    if end.outcome in ("error", "invalid", "oversize"):
        raise HookTrouble(end.outcome, end.words)
    answer = _config(end.answer)
    if isinstance(answer, Block):
        return answer
    growth = _size(end.edits) - _size({name: data[name] for name in end.edits if name in data})
    if growth > MAX_RETURN_BYTES:
        raise HookTrouble("oversize", f"added {growth:,} bytes to data; the limit is {MAX_RETURN_BYTES:,}")
    for name, value in end.edits.items():
        if name in FIELDS:
            setattr(ctx, name, value)
    return answer


def _config(answer: Any) -> TurnConfig | Block | None:
    if answer is None:
        return None
    if not isinstance(answer, dict):
        raise HookTrouble("invalid", f"returned {type(answer).__name__}; expected a dict or None")
    try:
        given = _Answer.model_validate(answer)
        if given.block:
            return Block(given.reason or Block().reason)
        fields = {name: getattr(given, name) for name in FIELDS if getattr(given, name) is not None}
        return TurnConfig.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise HookTrouble("invalid", f"returned an unusable {place}: {first['msg']}") from error


def _size(fields: JsonDict) -> int:
    return len(json.dumps(fields, ensure_ascii=False).encode(errors="replace"))
