"""What an activity says about its failure, beside the message; and which failures of workflow code end a workflow."""

from __future__ import annotations

from typing import Any

from temporalio.exceptions import ActivityError, ApplicationError

from everturn.errors import EverturnError

OVERFLOW = "context_overflow"
BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EverturnError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""They end the workflow as failed instead of blocking its task. Not `Exception`: that includes the SDK's
NondeterminismError, and a deploy that breaks replay would fail every running turn instead of waiting for a rollback."""


def failure_facts(error: BaseException | None) -> dict[str, Any]:
    """The facts that a model step attaches to its error; {} if there are none."""
    cause = error.cause if isinstance(error, ActivityError) else error
    if not isinstance(cause, ApplicationError) or not cause.details or not isinstance(cause.details[0], dict):
        return {}
    facts: dict[str, Any] = cause.details[0]  # pyright: ignore[reportUnknownVariableType] - JSON of our own
    return facts


def classification(error: BaseException | None) -> str | None:
    found = failure_facts(error).get("classification")
    return found if isinstance(found, str) else None
