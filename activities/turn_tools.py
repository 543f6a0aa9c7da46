"""The tools of a turn: the agent's, those that its request brought along, those that before_turn added by reference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from temporalio.exceptions import ApplicationError

from everturn.errors import InvalidAgent
from everturn.hooks.client_tools import client_tools
from everturn.hooks.decisions import TurnConfig
from everturn.hooks.references import UnresolvedReference, resolve
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.tools import Tool, tool
from everturn.turns import JsonDict

CLIENT_TOOLS_KEY: Final = "client_tools"
"""Under which a turn's settings keep the tools of its request."""
UNRESOLVED = "UnresolvedReference"
"""Type of the error of a worker that lacks what a turn needs; retried, as another worker may have it."""


def requested_tools(settings: JsonDict) -> dict[str, Tool]:
    """The client tools that came with the request of a turn. settings: as stored with the turn."""
    return client_tools(settings.get(CLIENT_TOOLS_KEY, ()))


def turn_tools(agent: RegisteredAgent, config: TurnConfig, requested: Mapping[str, Tool]) -> dict[str, Tool]:
    """Raises UnresolvedReference for a tool that this worker does not have, or that takes the name of another."""
    tools = {**agent.tools, **requested}
    both = sorted(agent.tools.keys() & requested.keys())
    if both:
        raise UnresolvedReference(f"the turn would have two tools named {both[0]!r}: the agent's and its request's")
    for reference in config.added_tools:
        added = _tool_at(reference)
        known = tools.setdefault(added.name, added)
        if known.function is not added.function:
            raise UnresolvedReference(
                f"the turn would have two tools named {added.name!r}: {reference!r} and another; rename one"
            )
    return tools


@lru_cache(maxsize=1024)
def _tool_at(reference: str) -> Tool:
    found = resolve(reference)
    if isinstance(found, Tool):
        return found
    try:
        return tool(found)
    except InvalidAgent as error:
        raise UnresolvedReference(f"{reference!r} cannot be used as a tool: {error}") from error


def unresolved(error: UnresolvedReference) -> ApplicationError:
    """For an activity that cannot go on here: a worker with the same code as the one that began may."""
    return ApplicationError(str(error), type=UNRESOLVED)
