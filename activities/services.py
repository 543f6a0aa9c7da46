"""The collaborators of the activities, given to each by its constructor."""

from __future__ import annotations

from concurrent.futures import Executor

from everturn.activities.models.lanes import ModelLanes
from everturn.activities.pace import ToolPace
from everturn.activities.running import RunningWork
from everturn.activities.settings import turn_config
from everturn.activities.tool_values import ToolValues
from everturn.activities.turn_tools import requested_tools, turn_tools, unresolved
from everturn.hooks.references import UnresolvedReference
from everturn.hooks.registry import AgentRegistry
from everturn.hooks.tools import Tool
from everturn.store.records import TurnFacts
from everturn.store.store import Store


class Services:
    """agents: what this worker can run. threads: runs plain `def` hooks and tools. running: what runs in this process.
    pace: how long its tools take here. grace: seconds that what runs has to end once this worker stops.

    Activities are registered before the worker runs, the store is opened when it does: see `use_store`.
    """

    def __init__(self, agents: AgentRegistry, lanes: ModelLanes, threads: Executor) -> None:
        self.agents, self.lanes, self.threads = agents, lanes, threads
        self.running = RunningWork()
        self.pace = ToolPace()
        self.grace = 0.0
        self._store: Store | None = None

    def use_store(self, store: Store | None) -> None:
        self._store = store

    @property
    def store(self) -> Store:
        if self._store is None:
            raise RuntimeError("the worker is not running: its store is not open")
        return self._store


class Activities:
    """Base of the activity classes."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def _store(self) -> Store:
        return self._services.store

    async def _tool(self, request_id: str, agent: str, name: str) -> Tool | None:
        """A tool of a turn, the agent's or added. Raises ApplicationError, to be retried, where it cannot be found."""
        registered = self._services.agents.get(agent)
        if name in registered.tools:
            return registered.tools[name]
        turn = await self._store.load_turn(request_id)
        try:
            return turn_tools(registered, turn_config(turn.config), requested_tools(turn.config)).get(name)
        except UnresolvedReference as error:
            raise unresolved(error) from error

    def _tool_values(self, agent: str, turn: TurnFacts) -> ToolValues:
        """What the turn's transforms make of tool calls. Raises ApplicationError, to be retried, where one of them
        cannot be found."""
        try:
            return ToolValues.of(self._services.agents.get(agent), turn_config(turn.config).transforms or [])
        except UnresolvedReference as error:
            raise unresolved(error) from error
