"""How a turn ends whose activity failed for good: the error that it shows, and the stage that the error arose in."""

from __future__ import annotations

from typing import Final

from temporalio.exceptions import ActivityError, ApplicationError, FailureError

from everturn.turns import TurnError
from everturn.workflows.failures import classification
from everturn.workflows.loop import LoopEnd

BAD_REQUEST: Final = frozenset({"BadInput", "MessageTooLarge"})
STORE_FAULTS: Final = frozenset({"StoreRefused", "StoreUnavailable", "TranscriptDamaged"})
SET_UP: Final = frozenset({"HookFailed", "context_failed"})
"""An agent's own hook that must fail the turn; a block of the system prompt that could not be assembled."""
WORKER_STOPPED: Final = "Shutdown"


def failed_end(error: FailureError, *, admitted: bool) -> LoopEnd:
    """admitted: the turn had its thread. A local activity fails with its own error, a regular one with an ActivityError
    around it."""
    name = error.activity_type if isinstance(error, ActivityError) else ""
    cause = error.cause if isinstance(error, ActivityError) else error
    if isinstance(cause, ApplicationError):
        kind, message = cause.type or "internal", cause.message
    else:
        kind, message = "internal", f"{name or 'a step of the turn'} did not complete: {cause}"
    if _is_lost(error, kind):
        kind, message = "lost", f"{name} was given up: its workers stopped or died again and again ({cause})"
    stage = _stage(kind, name) if admitted else ("parse" if kind in BAD_REQUEST else "persist")
    return LoopEnd("error", "error", TurnError(kind, message), stage, classification=classification(cause))


def unfinished(end: LoopEnd, error: FailureError) -> LoopEnd:
    """The end of a turn whose ending could not be stored: an answer that nobody can read is no answer."""
    if end.status not in ("completed", "blocked"):
        return end
    kind = (isinstance(error, ApplicationError) and error.type) or "internal"
    message = f"the answer could not be stored: {getattr(error, 'message', error)}"
    return LoopEnd("error", "error", TurnError(kind, message), "transcript")


def is_refused(error: FailureError) -> bool:
    """The store said no, or could not make sense of the turn's own rows: the message is what it stumbles over."""
    return isinstance(error, ApplicationError) and error.type in STORE_FAULTS - {"StoreUnavailable"}


def _is_lost(error: FailureError, kind: str) -> bool:
    """A regular activity used its attempts up without any answer: nothing failed but the workers that ran it."""
    return isinstance(error, ActivityError) and (
        kind == WORKER_STOPPED or not isinstance(error.cause, ApplicationError)
    )


def _stage(kind: str, name: str) -> str:
    if kind == "lost":
        return "recovery"
    if kind in STORE_FAULTS:
        return "transcript"
    return "turn" if kind in SET_UP or not name.endswith("model_step") else "stream"
