"""A limit on what a turn, a thread or a user may use."""

from __future__ import annotations

from datetime import timedelta

from everturn.hooks.contexts import TurnContext
from everturn.hooks.decisions import Block, TurnConfig
from everturn.hooks.hook import Hooks
from everturn.hooks.stopping import StopRule, StopScope, span_of, spent


class Budget(Hooks):
    """Ends turns when their share is used up.

    tokens: input and output. cost: US dollars; a model whose price is unknown counts as free. steps: model calls.
    seconds: since the turn began to run; for a thread or a user, the time that model calls took.

    scope: "turn" (the default), "thread", or "user": the principal's id within its tenant; users without an id share
    one budget. window: for a thread or a user, only turns submitted in so much time count; None: all of them.

    A turn that begins when the budget of its thread or user is used up is blocked, with `reason` as the reply. A turn
    that is under way ends after the step that goes over the limit and its tools, with stop reason `stop_when` (or
    `max_steps`): an answer that is being written is never cut, so turns that run at the same time may each go over by a
    step.
    """

    on_error = "raise"

    def __init__(
        self,
        *,
        tokens: int | None = None,
        cost: float | None = None,
        steps: int | None = None,
        seconds: float | None = None,
        scope: StopScope = "turn",
        window: timedelta | None = None,
        reason: str | None = None,
    ) -> None:
        if all(limit is None for limit in (tokens, cost, steps, seconds)):
            raise ValueError("a Budget needs at least one limit: tokens, cost, steps or seconds")
        if steps is not None and steps < 1:
            raise ValueError(f"Budget(steps=…) must be 1 or more, not {steps!r}")
        if scope == "turn" and reason is not None:
            raise ValueError("Budget(reason=…) needs scope 'thread' or 'user': the budget of a turn blocks nothing")
        self._scope, self._window, self._reason = scope, window, reason
        plain = scope == "turn" and window is None
        self._max_steps = steps if plain else None
        calls = None if plain else steps
        self._rule: StopRule | None = None
        if any(limit is not None for limit in (tokens, cost, seconds, calls)):
            self._rule = spent(tokens=tokens, cost=cost, seconds=seconds, steps=calls, scope=scope, window=window)
        if scope != "turn":
            span = f" in {span_of(window.total_seconds())}" if window is not None else ""
            self.name = f"Budget of a {scope}{span}"

    async def before_turn(self, ctx: TurnContext) -> TurnConfig | Block:
        rule = self._rule
        if rule is not None and self._scope != "turn":
            excess = rule.excess(await ctx.used(self._scope, self._window))
            if excess is not None:
                ctx.log("budget used up", {"scope": self._scope, "used": excess})
                whose = "Your budget" if self._scope == "user" else "The budget of this conversation"
                return Block(self._reason or f"{whose} is used up: {excess}.")
        return TurnConfig(max_steps=self._max_steps, stop_when=[rule] if rule is not None else None)
