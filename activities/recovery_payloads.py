"""Everything that crosses the line between the recovery workflows and their activities; otherwise as payloads.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from everturn.activities.crossing import crossing
from everturn.turns import TurnError

RECONCILE_WORKFLOW: Final = "EverturnReconcile"
"""Looks for turns that nothing executes any more. Started by a schedule."""
SETTLE_WORKFLOW: Final = "EverturnSettle"
"""Ends one such turn. Started by whoever finds it; its id is `settle-<request id>`."""

LostState = Literal["alive", "lost", "settled", "over", "unknown"]


@crossing
@dataclass(frozen=True)
class ReconcileInput:
    """One look at the store. grace: seconds for which a turn is left alone after it was submitted. draft_age: seconds
    after which a message whose turn was never started is given up. after: where an earlier part of this look ended."""

    grace: float = 30.0
    draft_age: float = 86400.0
    after: str = ""


@crossing
@dataclass(frozen=True)
class Page:
    """The rows to look at: those older than so many seconds, by request id, behind `after`."""

    older_than: float
    after: str = ""


@crossing
@dataclass(frozen=True)
class PageDone:
    """next: where the next page begins, None after the last. seen: its rows. gone: those without a workflow."""

    seen: int
    gone: int
    next: str | None = None


@crossing
@dataclass(frozen=True)
class ReconcileDone:
    """What one look found: unfinished turns, those of them that were lost, and the abandoned messages."""

    turns: int = 0
    lost: int = 0
    drafts: int = 0


@crossing
@dataclass(frozen=True)
class SettleInput:
    """A turn that may be lost."""

    request_id: str


@crossing
@dataclass(frozen=True)
class LostTurn:
    """state: alive (leave it alone), lost, settled (as lost, and its hooks were not told), over (in its own way), or
    unknown to the store. error: to be shown for a lost turn. points: the hooks to ask and tell. message_id: of the
    answer of a settled turn."""

    state: LostState
    agent: str = ""
    error: TurnError | None = None
    points: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    message_id: str | None = None
