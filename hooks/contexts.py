"""What a hook gets to see. Contexts are copies; only the fields named as editable can be set, and only added `Hooks`
change the turn by setting them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Final, TypeAlias

from everturn.hooks.cancel import CancelFlag
from everturn.hooks.log import HookLog, LogLevel
from everturn.messages import Message
from everturn.turns import (
    JsonDict,
    Principal,
    StopReason,
    Trigger,
    TurnError,
    TurnStatus,
    Usage,
    UsageScope,
    UsageSum,
)


@dataclass(frozen=True, slots=True)
class TurnRef:
    """The facts that every context carries.

    attempt: which try of this hook run, from 1. deadline: seconds since the epoch at which this run is cut off.
    idempotency_key: the same over retries of one hook run. state: kept across the hooks of a turn; hooks may write it.
    """

    request_id: str
    thread_id: str
    agent: str
    principal: Principal = field(default_factory=Principal)
    tenant_id: str | None = None
    trigger: Trigger = "submit"
    continuation: bool = False
    attempt: int = 1
    deadline: float = 0.0
    idempotency_key: str = ""
    body: JsonDict | None = None
    state: JsonDict = field(default_factory=dict[str, Any])


class HookContext:
    """Base of all contexts: the turn's facts as attributes, `state`, and `log()`."""

    editable: ClassVar[frozenset[str]] = frozenset()
    _closed: bool = False

    def __init__(self, ref: TurnRef, log: HookLog | None = None) -> None:
        self._ref: Final = ref
        self._log: Final = log or HookLog()

    def __setattr__(self, name: str, value: object) -> None:
        if self._closed and name not in self.editable:
            editable = ", ".join(sorted(self.editable)) or "nothing"
            raise AttributeError(
                f"{type(self).__name__}.{name} cannot be set (editable: {editable}); return a decision instead"
            )
        object.__setattr__(self, name, value)

    def _close(self) -> None:
        object.__setattr__(self, "_closed", True)

    @property
    def request_id(self) -> str:
        return self._ref.request_id

    @property
    def thread_id(self) -> str:
        return self._ref.thread_id

    @property
    def agent(self) -> str:
        return self._ref.agent

    @property
    def principal(self) -> Principal:
        return self._ref.principal

    @property
    def tenant_id(self) -> str | None:
        return self._ref.tenant_id

    @property
    def trigger(self) -> Trigger:
        return self._ref.trigger

    @property
    def continuation(self) -> bool:
        return self._ref.continuation

    @property
    def attempt(self) -> int:
        return self._ref.attempt

    @property
    def deadline(self) -> float:
        return self._ref.deadline

    @property
    def idempotency_key(self) -> str:
        return self._ref.idempotency_key

    @property
    def body(self) -> JsonDict | None:
        return self._ref.body

    @property
    def state(self) -> JsonDict:
        return self._ref.state

    def log(self, message: object, data: object = None, level: LogLevel = "info") -> None:
        """Adds a line to this run's trace: at most 50 lines a run, 4 KB each (cut with a mark)."""
        self._log.add(message, data, level)

    def log_dropped(self, count: int) -> None:
        """Notes lines over the limit that were left out before they came here."""
        self._log.drop(count)


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """A tool as the model is told of it."""

    description: str
    schema: JsonDict


UsageReader: TypeAlias = Callable[[UsageScope, timedelta | None], Awaitable[UsageSum]]


class PlanningContext(HookContext):
    """Base of the contexts of hooks that decide what comes next: they may ask what was used so far."""

    _usage: UsageReader | None = None

    async def used(self, scope: UsageScope, window: timedelta | None = None) -> UsageSum:
        """What the turns of this turn's thread, or of its user, have used; for `async def` hooks.

        A user is a principal's id within its tenant; users without an id count as one. window: only turns that were
        submitted in it, each with all that it used; None: ever. This turn counts with its finished steps.
        """
        if self._usage is None:
            raise RuntimeError("this context has no store at hand; contexts that Everturn makes have one")
        return await self._usage(scope, window)


class TurnContext(PlanningContext):
    """For `before_turn`. messages: what the model would see, in OpenAI's chat format, without the system prompt."""

    editable = frozenset({"system", "messages", "model", "temperature"})

    def __init__(
        self,
        ref: TurnRef,
        log: HookLog | None = None,
        *,
        system: str,
        messages: list[JsonDict],
        tools: dict[str, ToolInfo],
        model: str,
        temperature: float | None,
        usage: UsageReader | None = None,
    ) -> None:
        super().__init__(ref, log)
        self._usage = usage
        self.system, self.messages, self.tools = system, messages, tools
        self.model, self.temperature = model, temperature
        self._close()


@dataclass(frozen=True, slots=True)
class StepFacts:
    """A finished step: one model call and the tool calls that it asked for, with their results in call order."""

    step: int
    text: str = ""
    reasoning: str = ""
    files: list[JsonDict] = field(default_factory=list[JsonDict])
    sources: list[JsonDict] = field(default_factory=list[JsonDict])
    tool_calls: list[JsonDict] = field(default_factory=list[JsonDict])
    tool_results: list[JsonDict] = field(default_factory=list[JsonDict])
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    warnings: list[str] = field(default_factory=list[str])
    request: JsonDict = field(default_factory=dict[str, Any])
    response: JsonDict = field(default_factory=dict[str, Any])
    provider_metadata: JsonDict = field(default_factory=dict[str, Any])
    attempt: int = 1
    duration_ms: int = 0


class StepContext(PlanningContext):
    """For `before_step`. steps: the finished ones of this turn."""

    editable = frozenset({"messages", "model"})

    def __init__(
        self,
        ref: TurnRef,
        log: HookLog | None = None,
        *,
        step: int,
        steps: Sequence[StepFacts],
        model: str,
        messages: list[JsonDict],
        usage: UsageReader | None = None,
    ) -> None:
        super().__init__(ref, log)
        self._usage = usage
        self.step, self.steps, self.model, self.messages = step, tuple(steps), model, messages
        self._close()


class StepResult(HookContext):
    """For `on_step_finish`: the facts of the step that is complete now. `model_attempt` is the try of the model call
    that succeeded, `attempt` that of this hook run. duration_ms: the model call alone."""

    def __init__(self, ref: TurnRef, log: HookLog | None = None, *, facts: StepFacts) -> None:
        super().__init__(ref, log)
        self.step, self.text, self.reasoning = facts.step, facts.text, facts.reasoning
        self.files, self.sources = facts.files, facts.sources
        self.tool_calls, self.tool_results = facts.tool_calls, facts.tool_results
        self.finish_reason, self.usage, self.warnings = facts.finish_reason, facts.usage, facts.warnings
        self.request, self.response = facts.request, facts.response
        self.provider_metadata = facts.provider_metadata
        self.model_attempt, self.duration_ms = facts.attempt, facts.duration_ms
        self._close()


class ChunkContext(HookContext):
    """For `on_chunk`."""

    def __init__(self, ref: TurnRef, log: HookLog | None = None, *, step: int) -> None:
        super().__init__(ref, log)
        self.step = step
        self._close()


class ToolCallContext(HookContext):
    """For `before_tool_call`. input: the arguments as validated, or as rewritten by an earlier hook."""

    editable = frozenset({"input"})

    def __init__(
        self,
        ref: TurnRef,
        log: HookLog | None = None,
        *,
        tool_name: str,
        input: JsonDict,  # noqa: A002 - the field's standard name
        tool_call_id: str,
        step: int,
        messages: list[JsonDict],
        cancelled: CancelFlag,
    ) -> None:
        super().__init__(ref, log)
        self.tool_name, self.input, self.tool_call_id = tool_name, input, tool_call_id
        self.step, self.messages, self.cancelled = step, messages, cancelled
        self._close()


class ToolCallResultContext(HookContext):
    """For `after_tool_call`. input: as run; model_input: as the model asked. success is False if the tool raised, timed
    out or was refused for its input; blocked and substituted calls are successes."""

    editable = frozenset({"output"})

    def __init__(
        self,
        ref: TurnRef,
        log: HookLog | None = None,
        *,
        tool_name: str,
        tool_call_id: str,
        step: int,
        input: JsonDict | None,  # noqa: A002 - the field's standard name
        model_input: JsonDict | None,
        output: object,
        error: str | None,
        success: bool,
        duration_ms: int,
    ) -> None:
        super().__init__(ref, log)
        self.tool_name, self.tool_call_id, self.step = tool_name, tool_call_id, step
        self.input, self.model_input, self.output = input, model_input, output
        self.error, self.success, self.duration_ms = error, success, duration_ms
        self._close()


class ChatErrorContext(HookContext):
    """For `on_chat_error` and `classify_chat_error`. tried: for the latter, the models that were asked in this step,
    the one that failed last. stage: parse, persist, turn, stream, recovery or transcript.
    messages_persisted: the user message is stored."""

    def __init__(
        self,
        ref: TurnRef,
        log: HookLog | None = None,
        *,
        stage: str,
        messages_persisted: bool,
        classification: str | None,
        tried: Sequence[str] = (),
    ) -> None:
        super().__init__(ref, log)
        self.stage, self.messages_persisted, self.classification = stage, messages_persisted, classification
        self.tried = tuple(tried)
        self._close()


class ChatResponseResult(HookContext):
    """For `on_chat_response`: the stored assistant message and how the turn ended (completed, error, aborted; blocked
    if the message is a refusal)."""

    def __init__(
        self,
        ref: TurnRef,
        log: HookLog | None = None,
        *,
        message: Message,
        status: TurnStatus,
        stop_reason: StopReason | None,
        usage: Usage,
        error: TurnError | None,
    ) -> None:
        super().__init__(ref, log)
        self.message, self.status, self.stop_reason, self.usage, self.error = (
            message,
            status,
            stop_reason,
            usage,
            error,
        )
        self._close()


class TurnEndResult(HookContext):
    """For `on_turn_end`: like `ChatResponseResult`, for every ending; message is None where none was stored."""

    def __init__(
        self,
        ref: TurnRef,
        log: HookLog | None = None,
        *,
        message: Message | None,
        status: TurnStatus,
        stop_reason: StopReason | None,
        usage: Usage,
        error: TurnError | None,
    ) -> None:
        super().__init__(ref, log)
        self.message, self.status, self.stop_reason, self.usage, self.error = (
            message,
            status,
            stop_reason,
            usage,
            error,
        )
        self._close()


class ToolContext(HookContext):
    """For a tool function that takes a parameter annotated `ToolContext`; hidden from the tool's schema.

    cancelled: set when the turn is being cancelled. progress(value): shown to clients as `data-tool-progress`.
    """

    def __init__(
        self,
        ref: TurnRef,
        log: HookLog | None = None,
        *,
        tool_call_id: str,
        step: int,
        cancelled: CancelFlag,
        progress: Callable[[object], None],
    ) -> None:
        super().__init__(ref, log)
        self.tool_call_id, self.step, self.cancelled, self.progress = tool_call_id, step, cancelled, progress
        self._close()
