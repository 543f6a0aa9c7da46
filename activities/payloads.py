"""Everything that crosses the line between the turn workflow and its activities, and nothing else.

Ids and small facts only: transcripts, prompts, tokens and tool values stay in the store. These types, their fields
and the names below are a protocol: recorded histories are replayed against them, so fields are only ever added, with
defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from everturn.activities.crossing import crossing
from everturn.hooks.stopping import StopRule
from everturn.turns import TERMINAL, JsonDict, TurnError, TurnResult, Usage

WORKFLOW: Final = "EverturnTurn"
"""The workflow type of a chat turn."""


@crossing
@dataclass(frozen=True)
class TurnInput:
    """What a turn is started with. parts=None: the message is a draft in the store. previews=False: no text in history.
    after: the request that the same client submitted just before on this thread; it goes first. client_tools: name,
    description and schema of tools that the caller's front end runs in this turn."""

    request_id: str
    thread_id: str
    agent: str
    digest: str
    parts: list[JsonDict] | None = None
    policy: str = "queue"
    trigger: str = "submit"
    after: str | None = None
    message_metadata: JsonDict = field(default_factory=dict[str, Any])
    body: JsonDict | None = None
    principal: JsonDict | None = None
    tenant_id: str | None = None
    client_tools: list[JsonDict] = field(default_factory=list[JsonDict])
    previews: bool = True
    indexed: bool = False
    """The search attributes of turns are registered on this namespace."""
    has_store: bool = False
    """Its client reads the answer in the store: the workflow's result needs no more than a preview of it."""


@crossing
@dataclass(frozen=True)
class BeginInput:
    """A turn that asks for its thread. submitted_at: seconds since the epoch by Temporal's clock. withdrawn: it was
    cancelled before it could begin, and is only to be recorded."""

    turn: TurnInput
    run_id: str
    submitted_at: float
    withdrawn: bool = False
    asked_at: float = 0.0
    """By the same clock, now: a turn that waits for further messages is judged by it."""


@crossing
@dataclass(frozen=True)
class Begun:
    """outcome: run, queued, busy, full, known, conflict, withdrawn, unknown_agent or bad_request. points: hook point →
    names of its hooks.
    tool_patterns: for the two tool points, which tool names they react to (None = all). overflow_retries: re-runs of a
    step after a compaction that the provider made necessary. compactions: those made ahead."""

    outcome: str
    behind: str | None = None
    points: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    tool_patterns: dict[str, list[str] | None] = field(default_factory=dict[str, "list[str] | None"])
    max_steps: int = 10
    model: str = ""
    error: TurnError | None = None
    overflow_retries: int = 1
    compactions: int = 0
    hold_until: float | None = None
    """Seconds since the epoch until which a queued turn waits for further messages of its thread."""


@crossing
@dataclass(frozen=True)
class HookInput:
    """One hook point of a turn is due. names: the hooks that the turn's manifest has for it; None: the turn could not
    begin and has no manifest, so those that the agent has today."""

    request_id: str
    agent: str
    names: list[str] | None
    step: int | None = None
    tool_call_id: str | None = None
    stop_when: list[str] = field(default_factory=list[str])
    """For on_step_finish: references to the author's stop conditions that are to be asked."""
    limits: list[StopRule] = field(default_factory=list[StopRule])
    """For on_step_finish: limits that the turn shares with others of its thread or user."""
    unstored: Unstored | None = None
    """For on_turn_end: the turn's end, which the store does not know."""


@crossing
@dataclass(frozen=True)
class Unstored:
    """A turn whose end could not be stored. turn: without its message."""

    turn: TurnInput
    outcome: TurnOutcome


@crossing
@dataclass(frozen=True)
class StepVerdict:
    """What came of on_step_finish. stop: one of the author's conditions wants the turn to end here."""

    stop: bool = False


@crossing
@dataclass(frozen=True)
class TurnDecision:
    """blocked: the reason why the turn is refused, None if it goes on. stop_rules: those that the workflow can judge by
    itself; stop_checks: references to the author's own conditions. configured: as of CallInput."""

    blocked: str | None = None
    max_steps: int | None = None
    stop_rules: list[StopRule] = field(default_factory=list[StopRule])
    stop_checks: list[str] = field(default_factory=list[str])
    configured: bool = False


@crossing
@dataclass(frozen=True)
class StepInput:
    """One model step is due. on_chunk, classify: hooks of those points that the manifest has.
    may_compact: a prompt over the session's limit is refused before the model is asked."""

    request_id: str
    agent: str
    step: int
    on_chunk: list[str] = field(default_factory=list[str])
    classify: list[str] = field(default_factory=list[str])
    previews: bool = True
    may_compact: bool = False


@crossing
@dataclass(frozen=True)
class Asking:
    """A person is to approve a call. timeout: seconds until silence counts as a denial."""

    reason: str = ""
    timeout: float = 7 * 86400.0


@crossing
@dataclass(frozen=True)
class CallRef:
    """A tool call that the model asked for. executable=False: it is settled already (unknown tool, invalid or truncated
    input), `fingerprint` as in CallDone. label: what the Web UI shows. timeout: seconds. retries: of a failing run.
    ask: a person has to approve it first. client: the caller's front end runs it. quick: its tool is known to end
    within a fraction of a second."""

    tool_call_id: str
    tool_name: str
    label: str
    executable: bool = True
    timeout: float = 120.0
    retries: int = 0
    fingerprint: str = ""
    ask: Asking | None = None
    client: bool = False
    quick: bool = False


@crossing
@dataclass(frozen=True)
class StepDone:
    """What a model step came to. text: a preview, "" if previews are off. empty: neither text nor call; not stored."""

    step: int
    attempt: int
    model: str
    finish_reason: str
    calls: list[CallRef] = field(default_factory=list[CallRef])
    usage: Usage = field(default_factory=Usage)
    duration_ms: int = 0
    text: str = ""
    interrupted: bool = False
    empty: bool = False
    invalid_output: str = ""
    """What is wrong with a final answer that does not have the form of the turn's output."""


@crossing
@dataclass(frozen=True)
class CallInput:
    """A tool call, or one of its two hook points, is due. announce=False: `after_tool_call` will show the outcome.
    configured: before_turn settled something that concerns the turn's tools too: telemetry, transforms."""

    request_id: str
    agent: str
    step: int
    tool_call_id: str
    tool_name: str
    names: list[str] = field(default_factory=list[str])
    announce: bool = True
    configured: bool = False


@crossing
@dataclass(frozen=True)
class CallDone:
    """How a tool call ended. fingerprint: hash of tool, input and error, to recognise a loop of identical failures."""

    tool_call_id: str
    state: str
    duration_ms: int = 0
    failed: bool = False
    interrupted: bool = False
    fingerprint: str = ""
    error: str = ""


@crossing
@dataclass(frozen=True)
class CallDecision:
    """What `before_tool_call` came to. settled: the outcome of a call that must not run, None if it may. ask: a person
    has to approve it first."""

    settled: CallDone | None = None
    ask: Asking | None = None


@crossing
@dataclass(frozen=True)
class ErrorInput:
    """A turn failed. error: as the turn would show it; stage as in the author's contract; names as in HookInput. turn:
    without its message, for a store that does not know the turn or cannot be read."""

    request_id: str
    agent: str
    names: list[str] | None
    stage: str
    error: TurnError
    classification: str | None = None
    turn: TurnInput | None = None


@crossing
@dataclass(frozen=True)
class CompactInput:
    """A thread's prompt is too long for the model."""

    request_id: str
    agent: str


@crossing
@dataclass(frozen=True)
class CompactDone:
    """shortened: later prompts are shorter. Tokens are estimates."""

    shortened: bool
    tokens_before: int = 0
    tokens_after: int = 0


@crossing
@dataclass(frozen=True)
class FinishInput:
    """How a turn is to be finished. text: the reply of a block. stage, classification: of an error, for the log.
    turn: one that could not begin, without its message; it is recorded first. without_message: the assistant message
    cannot be stored. whole_text: the outcome carries the answer, not a preview of it."""

    request_id: str
    status: str
    stop_reason: str | None = None
    error: TurnError | None = None
    text: str | None = None
    reason: str | None = None
    previews: bool = True
    stage: str | None = None
    classification: str | None = None
    turn: TurnInput | None = None
    without_message: bool = False
    whole_text: bool = True


@crossing
@dataclass(frozen=True)
class TurnOutcome:
    """How a turn ended: the workflow's result. text: the answer up to 32 KB for a client without a
    store, else its first 512 bytes; "" if previews are off.
    next_request_id: the queued turn that has the thread now."""

    request_id: str
    thread_id: str
    status: str
    stop_reason: str | None = None
    message_id: str | None = None
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    error: TurnError | None = None
    next_request_id: str | None = None
    output: Any = None
    """The structured output up to 32 KB of JSON, None if previews are off."""
    superseded_by: str | None = None
    """The turn that took the place of this one."""
    joined: bool = False
    """That turn answers this one's message, too."""

    def as_result(self) -> TurnResult:
        """The client's view; the message itself is in the store."""
        if self.status not in TERMINAL:
            raise ValueError(f"turn {self.request_id} ended with the unknown status {self.status!r}")
        return TurnResult(
            request_id=self.request_id,
            thread_id=self.thread_id,
            status=self.status,  # type: ignore[arg-type]  # checked above; the wire has plain strings
            stop_reason=self.stop_reason,  # type: ignore[arg-type]  # written by the workflow from StopReason
            text=self.text,
            output=self.output,
            message_id=self.message_id,
            usage=self.usage,
            steps=self.steps,
            error=self.error,
        )


@crossing
@dataclass(frozen=True)
class CancelRequest:
    """Argument of the signal `cancel_chat`."""

    reason: str | None = None


@crossing
@dataclass(frozen=True)
class Predecessor:
    """A queued turn asks whether the turn before it is still alive."""

    request_id: str
    behind: str


def activity_name(name: str) -> str:
    """The registered name: prefixed, so that a worker's own activities cannot collide with ours."""
    return f"everturn.{name}"
