"""Who may run next in a thread: pure rules over the turns that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from everturn.policies import DEBOUNCE_BOUND, debounce_seconds, may_join


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued turn. after: the turn of the same client that must come first. takes_messages: its own message is a new
    one, so that further ones may stand behind it."""

    request_id: str
    submitted_at: datetime
    after: str | None = None
    policy: str = "queue"
    takes_messages: bool = True

    @property
    def place(self) -> tuple[datetime, str]:
        return (self.submitted_at, self.request_id)


def ahead_of(me: Waiting, others: Sequence[Waiting]) -> list[Waiting]:
    """The queued turns that come before `me`, the nearest last.

    Submission order decides; a turn that waits, through `after`, for `me` itself never stands before it, whatever the
    clocks of two servers say: both would wait for ever.
    """
    known = {turn.request_id: turn for turn in others}
    before = [turn for turn in others if turn.place < me.place and not _waits_for(turn, me.request_id, known)]
    return sorted(before, key=lambda turn: turn.place)


def first_of(queue: Sequence[Waiting]) -> str | None:
    """The turn that has nobody before it, None for an empty queue."""
    for turn in sorted(queue, key=lambda waiting: waiting.place):
        others = [other for other in queue if other is not turn]
        named = any(other.request_id == turn.after for other in others)
        if not named and not ahead_of(turn, others):
            return turn.request_id
    # Only a circle of `after` has no first turn; submission order then breaks it.
    return min(queue, key=lambda waiting: waiting.place).request_id if queue else None


def came_later(turn: Waiting, other: Waiting) -> bool:
    """Whether `turn` was submitted after `other`; what one client says of its own two counts more than clocks."""
    if turn.after == other.request_id:
        return True
    return other.after != turn.request_id and turn.place > other.place


def superseder_of(me: Waiting, others: Sequence[Waiting]) -> Waiting | None:
    """The newest turn that, by its policy, takes the place of `me`; None if there is none."""
    newer = [other for other in others if other.policy == "latest" and came_later(other, me)]
    return max(newer, key=lambda turn: turn.place, default=None)


def joiners_of(me: Waiting, others: Sequence[Waiting]) -> list[Waiting]:
    """The turns right behind `me` whose policy lets them join it, in order."""
    if not me.takes_messages:
        return []
    behind = sorted((other for other in others if came_later(other, me)), key=lambda turn: turn.place)
    return list(takewhile(lambda turn: turn.takes_messages and may_join(turn.policy, me.policy), behind))


def hold_until(me: Waiting, joiners: Sequence[Waiting]) -> datetime | None:
    """Until when a debounced turn waits for further messages: each that has come prolongs it, up to the bound."""
    seconds = debounce_seconds(me.policy)
    if seconds is None:
        return None
    ends = [turn.submitted_at + timedelta(seconds=debounce_seconds(turn.policy) or seconds) for turn in [me, *joiners]]
    return min(max(ends), me.submitted_at + timedelta(seconds=seconds * DEBOUNCE_BOUND))


def _waits_for(turn: Waiting, request_id: str, known: dict[str, Waiting]) -> bool:
    seen: set[str] = set()
    current: Waiting | None = turn
    while current is not None and current.after is not None and current.request_id not in seen:
        if current.after == request_id:
            return True
        seen.add(current.request_id)
        current = known.get(current.after)
    return False
