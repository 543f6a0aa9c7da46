"""A limit on what one turn may use."""

from __future__ import annotations

from everturn.hooks.contexts import TurnContext
from everturn.hooks.decisions import TurnConfig
from everturn.hooks.hook import Hooks
from everturn.hooks.stopping import StopCondition, spent


class Budget(Hooks):
    """Ends a turn that has used its share: completed, with stop reason `stop_when` or `max_steps`.

    tokens: input and output of all steps. cost: US dollars; a model whose price is unknown counts as free. steps: model
    calls. seconds: since the turn began to run. They are looked at after each step that called tools, so the step that
    goes over a limit is still finished, and an answer that is being written is never cut.

    It counts one turn. A budget of a thread or a user needs a look at other turns, which hooks do not have.
    """

    on_error = "raise"

    def __init__(
        self,
        *,
        tokens: int | None = None,
        cost: float | None = None,
        steps: int | None = None,
        seconds: float | None = None,
    ) -> None:
        if steps is not None and steps < 1:
            raise ValueError(f"Budget(steps=…) must be 1 or more, not {steps!r}")
        limited = any(limit is not None for limit in (tokens, cost, seconds))
        if not limited and steps is None:
            raise ValueError("a Budget needs at least one limit: tokens, cost, steps or seconds")
        self._steps = steps
        self._rules: list[StopCondition] = [spent(tokens=tokens, cost=cost, seconds=seconds)] if limited else []

    def before_turn(self, ctx: TurnContext) -> TurnConfig:
        return TurnConfig(max_steps=self._steps, stop_when=self._rules or None)
