"""The walks over payloads that the worker leaves out, and those that it must not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.bridge import worker as bridge
from temporalio.bridge.proto.workflow_activation import InitializeWorkflow, WorkflowActivation, WorkflowActivationJob
from temporalio.converter import DataConverter, PayloadCodec

from everturn.worker.payload_visits import WALKS, skip_idle_walks


class Shouting(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=p.metadata, data=p.data.lower()) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=p.metadata, data=p.data.upper()) for p in payloads]


@pytest.fixture(autouse=True)
def sdk() -> Iterator[None]:
    """The SDK is left as it was."""
    before = {name: getattr(bridge, name) for name in WALKS}
    yield
    for name, walk in before.items():
        setattr(bridge, name, walk)


def activation() -> WorkflowActivation:
    job = WorkflowActivationJob(initialize_workflow=InitializeWorkflow(arguments=[Payload(data=b"word")]))
    return WorkflowActivation(jobs=[job])


async def decoded(converter: DataConverter) -> tuple[bytes, Any]:
    given = activation()
    metrics = await bridge.decode_activation(given, converter, decode_headers=True, storage_concurrency_limit=1)
    return given.jobs[0].initialize_workflow.arguments[0].data, metrics


async def test_without_a_codec_nothing_is_walked_over_and_the_outcome_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = await decoded(DataConverter.default)
    assert skip_idle_walks()

    def walked(*_: Any, **__: Any) -> None:
        raise AssertionError("a walk")

    monkeypatch.setattr(bridge, "CommandAwarePayloadVisitor", walked)
    data, metrics = await decoded(DataConverter.default)
    assert (data, metrics.payload_count) == (plain[0], plain[1].payload_count) == (b"word", 0)


async def test_a_codec_is_still_asked() -> None:
    assert skip_idle_walks()
    assert (await decoded(replace(DataConverter.default, payload_codec=Shouting())))[0] == b"WORD"


async def test_it_is_done_once() -> None:
    assert skip_idle_walks()
    once = bridge.decode_activation
    assert skip_idle_walks()
    assert bridge.decode_activation is once


def test_an_sdk_that_is_not_as_expected_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def decode_activation(activation: Any, everything_else: Any) -> None:
        del activation, everything_else

    monkeypatch.setattr(bridge, "decode_activation", decode_activation)
    assert not skip_idle_walks()
    assert bridge.decode_activation is decode_activation
    monkeypatch.delattr(bridge, "decode_activation")
    assert not skip_idle_walks()
