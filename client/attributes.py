"""Search attributes of turns: set only where the namespace knows them, since an unknown one fails the start."""

from __future__ import annotations

import logging
from typing import Any, Final

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError

logger = logging.getLogger("everturn.client")

THREAD: Final = SearchAttributeKey.for_keyword("EverturnThread")
AGENT: Final = SearchAttributeKey.for_keyword("EverturnAgent")
STATUS: Final = SearchAttributeKey.for_keyword("EverturnStatus")
USER: Final = SearchAttributeKey.for_keyword("EverturnUser")
TENANT: Final = SearchAttributeKey.for_keyword("EverturnTenant")
ALL: Final = (THREAD, AGENT, STATUS, USER, TENANT)


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
            answer = await self._client.operator_service.list_search_attributes(
                ListSearchAttributesRequest(namespace=self._client.namespace)
            )
        except RPCError as error:
            logger.warning("search attributes are off: Temporal does not list them (%s)", error.message)
            return False
        missing = [key.name for key in ALL if key.name not in answer.custom_attributes]
        if missing:
            logger.warning("search attributes are off: %s not registered; run `everturn setup`", ", ".join(missing))
        return not missing


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
