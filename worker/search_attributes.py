"""The search attributes by which turns are found in the Temporal Web UI.

They are never encrypted, so they hold ids and words from fixed lists only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client

SEARCH_ATTRIBUTES: Final = (
    "EverturnThread",
    "EverturnAgent",
    "EverturnStatus",
    "EverturnUser",
    "EverturnTenant",
)
RPC_TIMEOUT = timedelta(seconds=10)


async def missing_search_attributes(client: Client) -> list[str]:
    """Those of ours that the client's namespace does not have as Keyword.

    Raises RPCError if the server cannot tell.
    """
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    return [name for name in SEARCH_ATTRIBUTES if answer.custom_attributes.get(name) != keyword]


async def add_search_attributes(client: Client, names: Sequence[str]) -> None:
    """Registers `names` in the client's namespace; raises RPCError if the server refuses."""
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(
            namespace=client.namespace,
            search_attributes=dict.fromkeys(names, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD),
        ),
        timeout=RPC_TIMEOUT,
    )
