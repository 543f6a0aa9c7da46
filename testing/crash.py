"""Crashes at chosen places of a turn, to see that it recovers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from everturn.activities.payloads import activity_name
from everturn.errors import BadInput

CrashPoint = Literal[
    "begin",
    "before_turn",
    "before_step",
    "model_step",
    "before_tool_call",
    "run_tool",
    "after_tool_call",
    "on_step_finish",
    "finish",
    "on_chat_error",
    "on_chat_response",
    "on_turn_end",
]
CRASH_POINTS: Final[tuple[str, ...]] = get_args(CrashPoint)
When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Crash:
    """Loses a piece of a turn's work as a dying worker would, and Temporal hands it out again.

    "before": the piece was not begun. "after": it was done, stores and side effects included, and its result is lost;
    this is where work is repeated that must not be. times: how often in one system, then no more. What else dies with a
    process, its memory and its connections, stays: that takes a real process and a real kill.
    """

    point: CrashPoint
    when: When = "before"
    times: int = 1


class CrashInterceptor(Interceptor):
    """Crashes the activities of one worker. Raises BadInput for a point that does not exist."""

    def __init__(self, crashes: Sequence[Crash]) -> None:
        for crash in crashes:
            if crash.point not in CRASH_POINTS:
                raise BadInput(f"there is no crash point {crash.point!r}; use one of {', '.join(CRASH_POINTS)}")
        self._left = {(activity_name(crash.point), crash.when): crash.times for crash in crashes}

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """See base class."""
        return _Crashing(next, self)

    def strike(self, name: str, when: When) -> None:
        """Raises if a crash is due here."""
        left = self._left.get((name, when), 0)
        if left > 0:
            self._left[name, when] = left - 1
            raise ApplicationError(f"a test crashed the worker {when} {name}", type="Crash")

    @property
    def pending(self) -> list[str]:
        """The crashes that have not happened yet, for a test that wants to be sure that they did."""
        return [f"{when} {name.removeprefix('everturn.')}" for (name, when), left in self._left.items() if left > 0]


class _Crashing(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, owner: CrashInterceptor) -> None:
        super().__init__(inner)
        self._owner = owner

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the name in the base class
        """See base class."""
        name = activity.info().activity_type
        self._owner.strike(name, "before")
        result = await super().execute_activity(input)
        self._owner.strike(name, "after")
        return result
