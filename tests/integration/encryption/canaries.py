"""Words that must not be readable in Temporal, and how everything is searched that Temporal keeps of a turn."""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
    ListWorkflowExecutionsRequest,
    QueryWorkflowRequest,
)
from temporalio.client import Client

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")


class Canaries:
    """Makes the words of one test: `canaries("reason")` is the same unmistakable word each time."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def __call__(self, role: str) -> str:
        return self._words.setdefault(role, f"canary{uuid.uuid4().hex[:12]}{role}")

    def found_in(self, text: bytes) -> set[str]:
        """The roles whose word is in these bytes, as it is or as base64."""
        readings = [text, *_decoded(text)]
        return {role for role, word in self._words.items() if any(word.encode() in reading for reading in readings)}


async def kept(client: Client, workflow_id: str, *, current: bool = False) -> list[Message]:
    """What Temporal keeps of a turn, as it keeps it: history, description, visibility. current: and what a worker shows
    of it now."""
    service, space = client.workflow_service, client.namespace
    execution = WorkflowExecution(workflow_id=workflow_id)
    found: list[Message] = []
    token = b""
    while True:
        page = await service.get_workflow_execution_history(
            GetWorkflowExecutionHistoryRequest(namespace=space, execution=execution, next_page_token=token)
        )
        found.append(page)
        token = page.next_page_token
        if not token:
            break
    found.append(
        await service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(namespace=space, execution=execution)
        )
    )
    found.append(
        await service.list_workflow_executions(
            ListWorkflowExecutionsRequest(namespace=space, query=f"WorkflowId = '{workflow_id}'")
        )
    )
    if current:
        for query in ("__temporal_workflow_metadata", "__stack_trace"):
            asked = QueryWorkflowRequest(namespace=space, execution=execution, query=WorkflowQuery(query_type=query))
            found.append(await service.query_workflow(asked))
    return found


def raw(messages: list[Message]) -> bytes:
    return b"\n".join(message.SerializeToString() for message in messages)


async def decoded(client: Client, messages: list[Message]) -> bytes:
    """The content of every payload, decrypted by the client's codec."""
    codec = client.data_converter.payload_codec
    assert codec is not None
    payloads = [payload for message in messages for payload in payloads_of(message)]
    return b"\n".join(payload.data for payload in await codec.decode(payloads))


def payloads_of(message: Message) -> Iterator[Payload]:
    """All payloads anywhere in a message."""
    if isinstance(message, Payload):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            values: list[Any] = list(value.values())
        else:
            values = list(value) if isinstance(value, list) or hasattr(value, "append") else [value]
        for item in values:
            if isinstance(item, Message):
                yield from payloads_of(item)


def event_types(messages: list[Message]) -> set[str]:
    """The kinds of history events, without their common prefix."""
    page: Any = messages[0]
    return {EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in page.history.events}


def pending_failures(messages: list[Message]) -> list[str]:
    """The last failures of activities that run or wait for their next attempt."""
    description: Any = messages[-2]
    return [str(pending.last_failure) for pending in description.pending_activities if pending.HasField("last_failure")]


def _decoded(text: bytes) -> Iterator[bytes]:
    for found in _BASE64.findall(text):
        for candidate in (found, found[: len(found) // 4 * 4]):
            try:
                yield base64.b64decode(candidate.translate(bytes.maketrans(b"-_", b"+/")))
            except binascii.Error:
                continue
