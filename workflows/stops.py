"""Whether a turn stops by one of its stop rules; they need no activity."""

from __future__ import annotations

from temporalio import workflow

from everturn.activities.payloads import StepDone, TurnDecision
from everturn.hooks.stopping import StopRule
from everturn.turns import Usage


class Stops:
    """Counts what the turn has used since it began to run. Asked elsewhere: checks, the author's own conditions, and
    limits, the rules by which other turns count too."""

    def __init__(self) -> None:
        self._rules: list[StopRule] = []
        self._started = workflow.time()
        self._usage = Usage()
        self.checks: list[str] = []
        self.limits: list[StopRule] = []

    def decide(self, decision: TurnDecision) -> None:
        self._rules = [rule for rule in decision.stop_rules if not rule.shared]
        self.limits = [rule for rule in decision.stop_rules if rule.shared]
        self.checks = decision.stop_checks

    def count(self, done: StepDone) -> None:
        self._usage = self._usage + done.usage

    def met(self, done: StepDone) -> bool:
        """True if the turn ends after this step."""
        called = [call.tool_name for call in done.calls]
        seconds = workflow.time() - self._started
        return any(
            rule.met(steps=done.step + 1, called=called, usage=self._usage, seconds=seconds) for rule in self._rules
        )
