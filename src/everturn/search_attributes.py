"""The search attributes by which turns are found in the Temporal Web UI.

They are never encrypted, so they hold ids and words from fixed lists only.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey

THREAD: Final = SearchAttributeKey.for_keyword("EverturnThread")
AGENT: Final = SearchAttributeKey.for_keyword("EverturnAgent")
STATUS: Final = SearchAttributeKey.for_keyword("EverturnStatus")
USER: Final = SearchAttributeKey.for_keyword("EverturnUser")
TENANT: Final = SearchAttributeKey.for_keyword("EverturnTenant")
SEARCH_ATTRIBUTES: Final = tuple(key.name for key in (THREAD, AGENT, STATUS, USER, TENANT))
RPC_TIMEOUT: Final = timedelta(seconds=10)


async def missing_search_attributes(client: Client) -> list[str]:
    """Those of ours that the client's namespace does not have as Keyword.

    Raises RPCError if the server cannot tell.
    """
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    return [name for name in SEARCH_ATTRIBUTES if answer.custom_attributes.get(name) != keyword]
