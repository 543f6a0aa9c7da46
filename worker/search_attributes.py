"""Registers the search attributes of turns in a namespace."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client

from everturn.search_attributes import RPC_TIMEOUT


async def add_search_attributes(client: Client, names: Sequence[str]) -> None:
    """Registers `names` in the client's namespace; raises RPCError if the server refuses."""
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(
            namespace=client.namespace,
            search_attributes=dict.fromkeys(names, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD),
        ),
        timeout=RPC_TIMEOUT,
    )
