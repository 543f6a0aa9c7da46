"""What a turn is and how it ends: the words that workers, clients and the store share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, get_args

TurnStatus = Literal[
    "queued", "running", "waiting", "completed", "error", "aborted", "blocked", "dropped", "superseded"
]
StopReason = Literal["end_turn", "max_steps", "stop_when", "blocked", "cancelled", "error", "tool_loop"]
Trigger = Literal["submit", "continue", "scheduled"]
CancelOutcome = Literal["cancelled", "already_terminal", "not_found"]
WaitKind = Literal["approval", "client_tool"]
Classification = Literal["context_overflow", "rate_limit", "transient", "fatal", "unknown"]
UsageScope = Literal["thread", "user"]
WaitOutcome = Literal["accepted", "already_resolved", "not_found"]

STATUSES: Final[tuple[str, ...]] = get_args(TurnStatus)
TERMINAL: Final = frozenset({"completed", "error", "aborted", "blocked", "dropped", "superseded"})

JsonDict = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is chatting, as the application says; handed to hooks and tools, never sent to the model."""

    id: str | None = None
    email: str | None = None
    is_anonymous: bool = False
    roles: tuple[str, ...] = ()
    metadata: JsonDict = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of a step or a turn. cost: US dollars, None when no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        known = [c for c in (self.cost, other.cost) if c is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            sum(known) if known else None,
        )

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class UsageSum:
    """What the turns of a thread or a user have used. steps: model calls. model_seconds: what those took."""

    turns: int = 0
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    model_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnError:
    """Why a turn failed, as clients may see it. type: a stable word; message: one sentence."""

    type: str
    message: str

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended. message: the assistant message's parts, None if nothing was stored or no store is at hand."""

    request_id: str
    thread_id: str
    status: TurnStatus
    stop_reason: StopReason | None = None
    text: str = ""
    message: list[JsonDict] | None = None
    message_id: str | None = None
    output: Any = None
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    error: TurnError | None = None

    @property
    def ok(self) -> bool:
        return self.status == "completed"

    def as_json(self) -> JsonDict:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StepInfo:
    """One model call of a turn, as stored."""

    step: int
    attempt: int
    model: str
    finish_reason: str
    text: str
    usage: Usage
    duration_ms: int
    tool_calls: int
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallInfo:
    """One tool call of a turn. state: requested, waiting, running, done, error, blocked,
    substituted, denied, unknown or interrupted."""

    step: int
    tool_call_id: str
    tool_name: str
    state: str
    input: Any
    output: Any
    error: str | None
    duration_ms: int | None


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A tool call that waits for somebody. kind: "approval" (approve or deny it) or "client_tool" (send its result).
    expires_at: ISO 8601 in UTC; an approval is then denied, a client tool's call fails."""

    request_id: str
    tool_call_id: str
    tool_name: str
    kind: WaitKind
    reason: str
    input: Any
    expires_at: str


@dataclass(frozen=True, slots=True)
class HookTraceInfo:
    """One run of one hook. outcome: ok, error, timeout, oversize or invalid."""

    point: str
    hook: str
    step: int | None
    outcome: str
    message: str | None
    duration_ms: int
    logs: list[JsonDict]
    changed: list[str]
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """A line of a list of turns. Times are ISO 8601 in UTC.

    superseded_by: the request id of the turn that took the place of this one. joined: that turn answers this one's
    message, too; otherwise the message is not answered.
    """

    request_id: str
    thread_id: str
    agent: str
    status: TurnStatus
    stop_reason: StopReason | None
    submitted_at: str
    started_at: str | None
    ended_at: str | None
    usage: Usage
    steps: int
    error: TurnError | None
    superseded_by: str | None = None
    joined: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """A schedule of turns. when: in words. next_at: ISO 8601 in UTC, None if it is not known or it will not fire again.
    recent: request ids of the turns that it started last, oldest first."""

    schedule_id: str
    thread_id: str
    agent: str
    when: str
    next_at: str | None = None
    recent: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """Everything that is known of one turn."""

    turn: TurnSummary
    steps: list[StepInfo]
    tool_calls: list[ToolCallInfo]
    hook_traces: list[HookTraceInfo]
    before_turn_hook_error: str | None
    attempts_failed: int
    web_ui: str | None = None

    def as_json(self) -> JsonDict:
        return asdict(self)
