"""What becomes of a message that meets a busy thread: the policies of a submission.

A policy travels and is stored as text: its name, and for debounce also its seconds, as in "debounce:2".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from everturn.checks import shown
from everturn.errors import BadInput

Policy = Literal["queue", "reject", "drop", "latest", "merge"]
POLICIES: Final = frozenset({"queue", "reject", "drop", "latest", "merge"})
DEBOUNCE: Final = "debounce"
MAX_DEBOUNCE: Final = 3600.0
"""Seconds; whoever waits longer for a further message wants a schedule."""
DEBOUNCE_BOUND: Final = 10
"""However many messages follow, a debounced turn waits at most so many times its seconds, counted from its first."""


@dataclass(frozen=True, slots=True)
class Debounce:
    """Policy: wait so many seconds for further messages of the thread, then answer all of them in one turn.

    Raises BadInput unless `seconds` is over 0 and at most 3,600.
    """

    seconds: float

    def __post_init__(self) -> None:
        if type(self.seconds) not in (int, float) or not 0 < self.seconds <= MAX_DEBOUNCE:
            raise BadInput(
                f"policy {DEBOUNCE} waits a number of seconds over 0 and at most {MAX_DEBOUNCE:g}, "
                f"not {shown(self.seconds)}"
            )

    def __str__(self) -> str:
        return f"{DEBOUNCE}:{self.seconds:g}"


def policy_text(given: object) -> str:
    """A policy as it travels. Raises BadInput for anything that is none."""
    if isinstance(given, Debounce):
        return str(given)
    if isinstance(given, str):
        name, _, seconds = given.partition(":")
        if name == DEBOUNCE:
            return str(Debounce(_number(seconds, given)))
        if given in POLICIES:
            return given
    names = ", ".join([*sorted(POLICIES), f"{DEBOUNCE}:SECONDS"])
    raise BadInput(f"policy {shown(given)} is unknown; use one of: {names}")


def debounce_seconds(policy: str) -> float | None:
    """How long a turn of this policy waits for further messages; None if it does not."""
    name, _, seconds = policy.partition(":")
    return float(seconds) if name == DEBOUNCE else None


def may_join(policy: str, starting: str) -> bool:
    """Whether a queued turn of `policy` lets its message be answered by the turn of policy `starting` before it."""
    return policy == "merge" or (debounce_seconds(policy) is not None and debounce_seconds(starting) is not None)


def may_be_joined(policy: str) -> bool:
    """Whether another turn may answer a message of this policy, which then has to be kept where that turn finds it."""
    return policy == "merge" or debounce_seconds(policy) is not None


def _number(text: str, policy: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f'policy {shown(policy)} names no seconds; write it as "{DEBOUNCE}:2"') from None
