"""Everything that Everturn raises on purpose.

    EverturnError
    ├── BadInput                 the caller's value cannot be used            (exit 2)
    │   ├── MessageTooLarge      the message is over the size limit
    │   ├── UnknownAgent         no worker knows this agent
    │   └── InvalidAgent         an agent or a tool is declared wrongly
    ├── Conflict                 the request meets a state that forbids it    (exit 1)
    │   ├── RequestConflict      the request id is taken by another request
    │   ├── NothingToContinue    the thread does not end with the assistant's message
    │   ├── ThreadBusy           policy "reject" and a turn is running
    │   ├── ScheduleExists       the schedule id is in use
    │   └── TooBusy              too many turns of the thread or the tenant wait already
    ├── NotFound                                                            (exit 1)
    │   ├── ScheduleNotFound     no schedule has this id
    │   ├── TurnNotFound         neither Temporal nor the store knows the turn
    │   └── CodeNotFound         the agent has no such version of turn code
    ├── Unavailable              a service cannot be reached                  (exit 3)
    │   ├── TemporalUnavailable
    │   └── StoreUnavailable
    ├── StoreRefused             the database refuses to store something      (exit 1)
    ├── TranscriptDamaged        a stored message or step cannot be read      (exit 1)
    ├── StoreRequired            the call reads the store, and none was given (exit 2)
    ├── ResultTimeout            the turn is not over yet; it goes on         (exit 1)
    └── ServerFailed             the embedded Temporal server did not start   (exit 3)

Each message says what was wrong, which value, and what to do.
"""

from __future__ import annotations

from typing import Literal


class EverturnError(Exception):
    """Base of all errors of this package."""

    exit_code = 1


class BadInput(EverturnError, ValueError):
    """A value from the caller cannot be used."""

    exit_code = 2


class MessageTooLarge(BadInput):
    """The user message is larger than can be accepted."""

    def __init__(self, size: int, limit: int, hint: str = "shorten it, or pass large content as a file part") -> None:
        self.size, self.limit = size, limit
        super().__init__(f"the message has {size:,} bytes as JSON; the limit is {limit:,}: {hint}")


class UnknownAgent(BadInput):
    """No agent of this name is registered."""

    def __init__(self, agent: str, known: tuple[str, ...] = ()) -> None:
        self.agent, self.known = agent, known
        names = ", ".join(sorted(known)) or "none"
        super().__init__(
            f"no agent is named {agent!r} on this worker (registered: {names}); check the name, or register the agent"
        )


class InvalidAgent(BadInput):
    """An agent, a hook or a tool is declared in a way that cannot run."""


class Conflict(EverturnError):
    """The request meets a state that forbids it."""


class RequestConflict(Conflict):
    """The request id belongs to a turn with another body."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        super().__init__(
            f"request_id {request_id!r} was used for another request (thread, agent, message or body differ); "
            "use a new request_id, or send exactly the same request again"
        )


class ThreadBusy(Conflict):
    """The thread has a running turn and the policy is "reject"."""

    def __init__(self, thread_id: str, running: str | None = None) -> None:
        self.thread_id, self.running = thread_id, running
        turn = f" (turn {running!r})" if running else ""
        super().__init__(
            f"thread {thread_id!r} has a running turn{turn}; wait for it, cancel it, or submit with policy='queue'"
        )


class TooBusy(Conflict):
    """The thread or the tenant has so many unfinished turns that no more are taken."""

    def __init__(self, scope: Literal["thread", "tenant"], name: str, length: int, limit: int) -> None:
        self.scope, self.name, self.length, self.limit = scope, name, length, limit
        what = "queued" if scope == "thread" else "unfinished"
        super().__init__(
            f"{scope} {name!r} has {length:,} {what} turns and the limit is {limit:,}; "
            "submit again when some of them are over, or cancel some"
        )


class NothingToContinue(Conflict):
    """The thread does not end with an assistant's message."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"the newest message of thread {thread_id!r} is not the assistant's, so there is nothing to continue; "
            "submit a message instead"
        )


class ScheduleExists(Conflict):
    """A schedule with this id exists."""

    def __init__(self, schedule_id: str) -> None:
        self.schedule_id = schedule_id
        super().__init__(f"schedule {schedule_id!r} exists already; unschedule it first, or use another id")


class NotFound(EverturnError):
    """The thing that was asked for does not exist."""


class TurnNotFound(NotFound):
    """Neither Temporal nor the store knows this turn."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        super().__init__(
            f"no turn has the request_id {request_id!r}; check the id, the namespace and the store address"
        )


class ScheduleNotFound(NotFound):
    """No schedule has this id."""

    def __init__(self, schedule_id: str) -> None:
        self.schedule_id = schedule_id
        super().__init__(
            f"there is no schedule {schedule_id!r}; `everturn schedule list` names those of this namespace"
        )


class CodeNotFound(NotFound):
    """The agent has no turn code, or not this version."""

    def __init__(self, agent: str, version: int | None = None) -> None:
        self.agent, self.version = agent, version
        what = "active turn code" if version is None else f"version {version} of turn code"
        super().__init__(f"agent {agent!r} has no {what} in this store; everturn hooks log {agent} lists what there is")


class Unavailable(EverturnError):
    """A service that is needed cannot be reached."""

    exit_code = 3


class TemporalUnavailable(Unavailable):
    """The Temporal server cannot be reached."""

    def __init__(self, target: str, reason: str) -> None:
        self.target = target
        super().__init__(
            f"Temporal cannot be reached at {target}: {reason}; start it (everturn server), or set EVERTURN_TARGET"
        )


class StoreUnavailable(Unavailable):
    """The database cannot be reached, or its schema is not the expected one."""

    def __init__(self, url: str, reason: str, hint: str = "check EVERTURN_STORE and that the database is up") -> None:
        self.url = url
        super().__init__(f"the store {url} cannot be used: {reason}; {hint}")


class StoreRefused(EverturnError):
    """The database is there and refuses a statement: a constraint, a trigger, a value. Trying again does not help."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        super().__init__(
            f"the store {url} refused a statement: {reason}; look for constraints, triggers and rights that Everturn "
            "did not make"
        )


class TranscriptDamaged(EverturnError):
    """A stored message or step of a thread is not what Everturn writes."""

    def __init__(self, thread_id: str, reason: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"the transcript of thread {thread_id!r} cannot be read: {reason}; mend the thread's rows in `messages`, "
            "`steps` and `tool_calls`, or go on in a new thread"
        )


class StoreRequired(EverturnError):
    """The call reads the store, and this client was connected without one."""

    exit_code = 2

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} reads the store; connect with ChatClient.connect(store=…) or set EVERTURN_STORE")


class ResultTimeout(EverturnError, TimeoutError):
    """The turn did not end within the caller's timeout; it goes on running."""

    def __init__(self, request_id: str, seconds: float) -> None:
        self.request_id = request_id
        super().__init__(
            f"turn {request_id!r} is not over after {seconds:g} s; it goes on: wait again, or cancel_chat it"
        )


class ServerFailed(Unavailable):
    """The embedded Temporal server did not start."""
