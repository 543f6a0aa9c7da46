"""What goes into the store and comes out of it: frozen, plain, no SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from everturn.chunks import Event
from everturn.messages import Message, Part
from everturn.turns import JsonDict, Principal, StopReason, Trigger, TurnError, TurnStatus, Usage, WaitKind

Manifest = dict[str, list[str]]
"""Hook point → names of the hooks that implement it, in order; recorded once, when the turn is admitted."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many turns may wait. per_thread: queued turns of one thread. per_tenant: unfinished turns of one tenant."""

    per_thread: int
    per_tenant: int


@dataclass(frozen=True, slots=True)
class Admission:
    """A turn that asks to begin. The user message is inline, or (draft=True) was put into the store before."""

    request_id: str
    thread_id: str
    agent: str
    digest: str
    """Hash of everything that the caller asked for: the same request id with another digest is a conflict."""
    policy: str
    """As in everturn.policies."""
    trigger: Trigger
    submitted_at: float
    """Seconds since the epoch, by Temporal's clock; orders the queue of a thread."""
    asked_at: float
    """By the same clock, when it asks: a turn that waits for further messages is judged by it."""
    run_id: str
    """The workflow run that executes the turn; the fence against a second one."""
    parts: list[Part] | None = None
    draft: bool = False
    rewrite: Callable[[list[Part]], list[Part]] | None = None
    """What is to be done with the messages that the turn answers before they are stored."""
    after: str | None = None
    """A request of the same client, submitted just before this one, that must come first, even if it has not begun."""
    message_metadata: JsonDict = field(default_factory=dict[str, object])
    body: JsonDict | None = None
    principal: Principal | None = None
    tenant_id: str | None = None
    config: JsonDict | None = None
    """What the request itself settles; `before_turn` adds what it decides."""
    manifest: Manifest | None = None
    """None: the worker does not know the agent; the first one that does records the manifest."""
    room: Room | None = None
    """None: any number of turns may wait."""
    withdrawn: bool = False
    """Cancelled before it could begin: to be recorded without its message, and to be finished as aborted."""


AdmissionOutcome = Literal["run", "queued", "busy", "full", "known", "conflict", "withdrawn", "nothing_to_continue"]


@dataclass(frozen=True, slots=True)
class Admitted:
    """run: the thread is this turn's. queued: wait for `behind`, or until `hold_until`. busy: refused by policy. full:
    refused because too many others wait, see `error`. known: the turn is over, be it by this very question. conflict:
    the id belongs to another request. withdrawn: recorded; finish it. nothing_to_continue: the newest message of the
    thread is not the assistant's."""

    outcome: AdmissionOutcome
    behind: str | None = None
    manifest: Manifest = field(default_factory=dict[str, list[str]])
    hold_until: float | None = None
    """Seconds since the epoch: the turn waits for further messages of its thread."""
    superseded: list[str] = field(default_factory=list[str])
    """Turns whose place this one took: they are over, and their workflows are to be told."""
    cancel: str | None = None
    """The running turn, which this one wants out of its way."""
    error: TurnError | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """Answer to an attempt that wants to work on a step.

    attempt: the fence to write with, from 1, one higher than any before. stored: the step is done already.
    superseded: a later attempt of the same activity has begun; stop without writing.
    failures: attempts with the model in use that failed before. fallback: models that were given up before it.
    chosen: models that hooks chose to follow failed ones, the one in use last; empty if the agent's own is in use.
    """

    attempt: int
    stored: StepRecord | None = None
    superseded: bool = False
    failures: int = 0
    fallback: int = 0
    chosen: tuple[str, ...] = ()


CallState = Literal[
    "requested",
    "waiting",
    "running",
    "done",
    "error",
    "blocked",
    "substituted",
    "denied",
    "unknown",
    "interrupted",
]
SETTLED_CALLS: frozenset[str] = frozenset(
    {"done", "error", "blocked", "substituted", "denied", "unknown", "interrupted"}
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model asked for it, and what became of it.

    input: the validated arguments, None when they were not a JSON object. raw_input: the model's own text then.
    output: what the model sees; raw_output: what the tool returned, where `after_tool_call` replaced it or it was cut.
    """

    tool_call_id: str
    tool_name: str
    step: int
    index: int
    input: JsonDict | None
    raw_input: str | None = None
    provider: JsonDict | None = None
    """Opaque provider fields that have to be sent back with the call."""
    state: CallState = "requested"
    output: object = None
    raw_output: object = None
    model_input: JsonDict | None = None
    """The model's own arguments, where a hook rewrote `input`."""
    run_input: JsonDict | None = None
    """The arguments to run with, where `input` shows them changed; gone once the call is settled."""
    error: str | None = None
    duration_ms: int | None = None

    @property
    def arguments(self) -> JsonDict | None:
        """What the tool runs with."""
        return self.run_input if self.run_input is not None else self.input


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One finished model call, written once.

    parts: text, reasoning and {"type": "tool-call", "toolCallId"} in the order in which the model produced them.
    interrupted: the step was cancelled, `parts` is what had arrived by then.
    """

    request_id: str
    step: int
    attempt: int
    model: str
    parts: list[Part]
    calls: list[ToolCall]
    finish_reason: str
    usage: Usage
    duration_ms: int
    interrupted: bool = False
    response: JsonDict = field(default_factory=dict[str, object])
    """Response id, served model, provider metadata, warnings."""
    output: Any = None
    """The turn's structured output, if this is its final answer."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Chunks of one turn to append, in order. attempt=None: written outside of steps, never fenced."""

    request_id: str
    events: Sequence[Event]
    step: int | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What an activity needs to know of its turn."""

    request_id: str
    thread_id: str
    agent: str
    trigger: Trigger
    status: TurnStatus
    body: JsonDict | None
    principal: Principal
    tenant_id: str | None
    manifest: Manifest
    config: JsonDict
    """What the request settled and before_turn decided, {} for nothing."""
    state: JsonDict
    steps: int
    usage: Usage
    stop_reason: StopReason | None = None
    error: TurnError | None = None
    begun: bool = False
    """The turn had its thread, so its user message is stored."""


@dataclass(frozen=True, slots=True)
class PromptMaterial:
    """All that a prompt is made from: the visible transcript up to this turn's user message, then this turn's steps."""

    turn: TurnFacts
    messages: list[Message]
    steps: list[StepRecord]
    summary: str | None = None
    """Stands for messages of this thread that are left out of `messages`."""
    context: dict[str, str] | None = None
    """Blocks of the system prompt that were assembled for this thread; None if none were yet."""
    extent: tuple[int, int, int] = (0, 0, 0)
    """Which messages those are: up to which position, and without those from one to another."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Messages of a thread that a summary stands for from now on: from the first to the last, both by id."""

    thread_id: str
    first_message_id: str
    last_message_id: str
    summary: str


@dataclass(frozen=True, slots=True)
class CallWait:
    """A tool call that waits for an approval or for a front end's result. until: seconds since the epoch."""

    tool_call_id: str
    kind: WaitKind
    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class ToolOpening:
    """Answer to an attempt that wants to run a tool call.

    run: go. settled: it has an outcome (see `call`); do not run. lost: an earlier attempt died inside a tool that is
    not idempotent; the caller settles it as `unknown`. superseded: a later attempt has begun.
    """

    outcome: Literal["run", "settled", "lost", "superseded"]
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn is to be finished."""

    request_id: str
    status: TurnStatus
    stop_reason: StopReason | None = None
    error: TurnError | None = None
    text: str | None = None
    """A reply that no model wrote: the reason of a block."""
    reason: str | None = None
    """Why a turn was aborted, in the caller's words."""
    without_message: bool = False
    """The assistant message cannot be stored: the turn ends without it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A turn that is over: as stored, whoever finished it. next_request_id: the turn that is next in its thread.
    begun: it had its thread, so its user message is stored."""

    request_id: str
    thread_id: str
    status: TurnStatus
    stop_reason: StopReason | None
    error: TurnError | None
    message: Message | None
    usage: Usage
    steps: int
    next_request_id: str | None = None
    output: Any = None
    superseded_by: str | None = None
    joined: bool = False
    begun: bool = False


@dataclass(frozen=True, slots=True)
class HookTrace:
    """One run of one hook, as recorded. outcome: ok, error, timeout, oversize, invalid."""

    request_id: str
    point: str
    hook: str
    outcome: str
    duration_ms: int
    step: int | None = None
    tool_call_id: str | None = None
    message: str | None = None
    logs: list[JsonDict] = field(default_factory=list[JsonDict])
    changed: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class TurnHead:
    """The few facts that queueing and reading need: who, where, which state. answered_by: the turn that this one's
    message has joined. last_seq: number of its last stream event."""

    request_id: str
    thread_id: str
    agent: str
    digest: str
    status: TurnStatus
    run_id: str
    answered_by: str | None
    last_seq: int


@dataclass(frozen=True, slots=True)
class HookCode:
    """One version of an agent's turn code. Times are ISO 8601 in UTC. removed_at: since when no new turn runs it."""

    agent: str
    version: int
    source: str
    author: str
    created_at: str
    removed_by: str | None = None
    removed_at: str | None = None


@dataclass(frozen=True, slots=True)
class CodeRun:
    """What a version of an agent's turn code did in one turn."""

    request_id: str
    version: int
    outcome: str
    message: str | None
    duration_ms: int
    created_at: str
    logs: list[JsonDict] = field(default_factory=list[JsonDict])
    changed: list[str] = field(default_factory=list[str])
