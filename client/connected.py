"""What every part of the client has at hand."""

from __future__ import annotations

from everturn.client.temporal import TemporalTurns
from everturn.connection import web_ui_of
from everturn.errors import StoreRequired
from everturn.settings import Settings
from everturn.store.store import Store


class Connected:
    """Base of the parts of the client: Temporal, and the store if there is one."""

    def __init__(self, temporal: TemporalTurns, store: Store | None, settings: Settings) -> None:
        self._temporal, self._store, self._settings = temporal, store, settings
        self._web_ui = web_ui_of(settings, temporal.client)

    def _need_store(self, call: str) -> Store:
        if self._store is None:
            raise StoreRequired(call)
        return self._store
