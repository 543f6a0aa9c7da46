"""What the author's hooks are asked and told when a turn is over, by the turn itself or when a lost one is settled."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio import workflow
from temporalio.exceptions import FailureError

from everturn.activities.payloads import ErrorInput, HookInput, Unstored
from everturn.turns import TurnError
from everturn.workflows.arrows import Arrows


async def ask_to_show(arrows: Arrows, given: ErrorInput) -> TurnError:
    """The error as the author's on_chat_error wants it shown; the original one if the hook fails."""
    try:
        return await arrows.on_chat_error(given)
    except FailureError as error:
        workflow.logger.warning("on_chat_error failed; the original error is shown", exc_info=error)
        return given.error


async def tell_the_end(
    arrows: Arrows,
    request_id: str,
    agent: str,
    points: Mapping[str, list[str]] | None,
    *,
    answered: bool,
    unstored: Unstored | None = None,
) -> None:
    """Calls on_chat_response (if there is an answer), then on_turn_end. points: hook point → names of its hooks; None:
    the turn could not begin, so that its manifest is not known."""
    for point, arrow in (("on_chat_response", arrows.on_chat_response), ("on_turn_end", arrows.on_turn_end)):
        names = points.get(point, []) if points is not None else None
        if names == [] or (point == "on_chat_response" and not answered):
            continue
        try:
            await arrow(HookInput(request_id, agent, names, unstored=unstored))
        except FailureError as error:
            workflow.logger.warning("%s failed for good; the turn keeps its result", point, exc_info=error)
