"""The places at which a worker is killed, each with the scenario in which it is met."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.chaos import scenarios
from tests.chaos.faults import Fault, When
from tests.chaos.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class Point:
    """most: the fault strikes at one of this many first visits. extra: model calls that the crash may cost: those that
    are under way in the struck turn, or in the next one of its thread, which begins before the last hooks have run."""

    name: str
    scenario: Scenario
    place: str
    when: When
    most: int = 1
    extra: int = 0

    def fault(self, dice: random.Random) -> Fault | None:
        """None if the scenario itself kills the worker."""
        if not self.place:
            return None
        return Fault(self.place, self.when, dice.randint(1, self.most), dice.choice((0.0, dice.uniform(0.0, 0.08))))


def _around(scenario: Scenario, *places: str, most: int = 1, before: int = 0, after: int = 0) -> list[Point]:
    """before, after: model calls that a crash there may cost."""
    found: list[Point] = []
    for place in places:
        label = f"{place} in {scenario.__name__}"
        found.append(Point(f"before {label}", scenario, place, "before", most, before))
        found.append(Point(f"after {label}", scenario, place, "after", most, after))
    return found


def _inside(scenario: Scenario, *places: str, most: int = 1, extra: int = 0) -> list[Point]:
    name = scenario.__name__
    return [Point(f"inside {place} in {name}", scenario, place, "inside", most, extra) for place in places]


POINTS: list[Point] = [
    # Every commit of a turn: inside its transaction, and when nobody has been told of it yet.
    *_around(scenarios.tools, "commit:begin", "commit:finish"),
    *_around(scenarios.tools, "commit:open_step", most=2),
    *_around(scenarios.tools, "commit:append", most=6, before=1, after=1),
    *_around(scenarios.tools, "commit:commit_step", most=2, before=1),
    *_around(scenarios.tools, "commit:open_call", "commit:settle_call", most=2),
    *_around(scenarios.hooks, "commit:save_decision", "commit:merge_state"),
    *_around(scenarios.hooks, "commit:insert_traces", most=6),
    *_around(scenarios.hooks, "commit:present_call", most=2),
    *_around(scenarios.retry, "commit:fail_attempt", before=1),
    *_around(scenarios.failure, "commit:persist_message"),
    *_around(scenarios.approval, "commit:open_wait", "commit:approve_wait"),
    *_around(scenarios.client_tool, "commit:settle_call"),
    *_around(scenarios.folding, "commit:fold"),
    # Every activity: not begun, and done with its result lost.
    *_around(scenarios.tools, "activity:begin"),
    *_around(scenarios.tools, "activity:finish", after=1),
    *_around(scenarios.tools, "activity:model_step", most=2),
    *_around(scenarios.tools, "activity:run_tool", most=2),
    *_around(scenarios.hooks, "activity:before_turn"),
    *_around(scenarios.hooks, "activity:on_chat_response", "activity:on_turn_end", before=1, after=1),
    *_around(scenarios.hooks, "activity:before_step", "activity:on_step_finish", most=2),
    *_around(scenarios.hooks, "activity:before_tool_call", "activity:after_tool_call", most=2),
    *_around(scenarios.failure, "activity:on_chat_error"),
    *_around(scenarios.approval, "activity:open_wait", "activity:resolve_wait"),
    *_around(scenarios.folding, "activity:compact"),
    # In the author's code: the effect is there, its outcome is not.
    *_inside(scenarios.tools, "tool:charge", "tool:remember"),
    *_inside(scenarios.approval, "tool:transfer"),
    *_inside(scenarios.hooks, "hook:before_turn"),
    *_inside(scenarios.hooks, "hook:on_chat_response", "hook:on_turn_end", extra=1),
    *_inside(scenarios.hooks, "hook:before_step", "hook:on_step_finish", most=2),
    *_inside(scenarios.hooks, "hook:before_tool_call", "hook:after_tool_call", most=2),
    *_inside(scenarios.failure, "hook:on_chat_error"),
    # Waiting for a person.
    Point("while an approval is waited for", scenarios.approval_of_nobody, "", "inside"),
    # The hand-over to the next turn of a thread.
    *_around(scenarios.queue, "commit:begin", "activity:begin", most=4, before=1, after=1),
    *_around(scenarios.queue, "commit:finish", most=2),
    *_around(scenarios.queue, "activity:finish", most=2, after=1),
    # A cancel on its way.
    *_around(scenarios.cancel, "activity:interrupt", before=1, after=1),
    *_around(scenarios.cancel, "commit:commit_step", "commit:finish", before=1, after=1),
]
