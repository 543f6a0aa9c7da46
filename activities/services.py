"""The collaborators of the activities, given to each by its constructor."""

from __future__ import annotations

from concurrent.futures import Executor

from everturn.activities.models.lanes import ModelLanes
from everturn.activities.running import RunningWork
from everturn.hooks.registry import AgentRegistry
from everturn.store.store import Store


class Services:
    """agents: what this worker can run. threads: runs plain `def` hooks and tools. running: what runs in this process.

    Activities are registered before the worker runs, the store is opened when it does: see `use_store`.
    """

    def __init__(self, agents: AgentRegistry, lanes: ModelLanes, threads: Executor) -> None:
        self.agents, self.lanes, self.threads = agents, lanes, threads
        self.running = RunningWork()
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
