"""What crosses the line for tool calls that wait for somebody. As in payloads.py, fields are only ever added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everturn.activities.crossing import crossing
from everturn.turns import JsonDict


@crossing
@dataclass(frozen=True)
class WaitInput:
    """A call begins to wait. kind: approval or client_tool. until: seconds since the epoch."""

    request_id: str
    tool_call_id: str
    kind: str
    reason: str
    until: float


@crossing
@dataclass(frozen=True)
class WaitAnswer:
    """The answer to a waiting call. answer: approved, denied, result or expired. error: the reason of a denial, or the
    error that a front end reports."""

    request_id: str
    agent: str
    tool_call_id: str
    tool_name: str
    answer: str
    input: JsonDict | None = None
    output: Any = None
    error: str | None = None
    announce: bool = True


@crossing
@dataclass(frozen=True)
class Approval:
    """Argument of the update `approve`. input: other arguments for the call, None to run it as asked."""

    tool_call_id: str
    input: JsonDict | None = None


@crossing
@dataclass(frozen=True)
class Denial:
    """Argument of the update `deny`."""

    tool_call_id: str
    reason: str | None = None


@crossing
@dataclass(frozen=True)
class ClientResult:
    """Argument of the update `submit_tool_result`. error: set if the front end's tool failed."""

    tool_call_id: str
    output: Any = None
    error: str | None = None
