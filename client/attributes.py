"""Search attributes of turns: set only where the namespace knows them, since an unknown one fails the start."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from temporalio.client import Client
from temporalio.common import Priority, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError

from everturn.search_attributes import AGENT, STATUS, TENANT, THREAD, USER, missing_search_attributes

logger = logging.getLogger("everturn.client")
MAX_FAIRNESS_KEY = 64
"""Bytes that Temporal allows."""


class SearchAttributes:
    """Asks Temporal once which attributes are registered."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._registered: bool | None = None

    async def registered(self) -> bool:
        """True if all of ours are; warns once if they are not."""
        if self._registered is None:
            self._registered = await self._ask()
        return self._registered

    async def _ask(self) -> bool:
        try:
            missing = await missing_search_attributes(self._client)
        except RPCError as error:
            logger.warning("search attributes are off: Temporal does not list them (%s)", error.message)
            return False
        if missing:
            logger.warning("search attributes are off: %s not registered; run `everturn setup`", ", ".join(missing))
        return not missing


def priority_of(tenant: str | None) -> Priority:
    """Tenants get equal shares of busy workers, for turns and their steps, where the server balances by fairness keys.

    An id that is too long for a key is replaced by its hash.
    """
    if tenant is None:
        return Priority.default
    fits = len(tenant.encode()) <= MAX_FAIRNESS_KEY
    return Priority(fairness_key=tenant if fits else hashlib.sha256(tenant.encode()).hexdigest())


def of_turn(thread: str, agent: str, user: str | None, tenant: str | None) -> TypedSearchAttributes:
    """Ids and enums only: search attributes are never encrypted."""
    pairs: list[SearchAttributePair[Any]] = [
        SearchAttributePair(THREAD, thread),
        SearchAttributePair(AGENT, agent),
        SearchAttributePair(STATUS, "running"),
    ]
    if user is not None:
        pairs.append(SearchAttributePair(USER, user))
    if tenant is not None:
        pairs.append(SearchAttributePair(TENANT, tenant))
    return TypedSearchAttributes(pairs)
