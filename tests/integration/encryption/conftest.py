"""The encryption example as a module, and clients that use it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from everturn.testing import System, running
from tests.integration.encryption.authors import make_agents
from tests.integration.encryption.canaries import Canaries
from tests.integration.encryption.scenes import SCRIPT
from tests.services.temporal import TemporalService

EXAMPLES = Path(__file__).parents[3] / "examples"
Connect = Callable[[Mapping[str, bytes]], Any]


def load_example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def encryption() -> ModuleType:
    """examples/encryption.py"""
    return load_example("encryption")


@pytest.fixture(scope="session")
def encrypted(temporal: TemporalService, encryption: ModuleType) -> Connect:
    """Makes a client whose payloads are encrypted with the given keys."""

    async def connect(keys: Mapping[str, bytes]) -> Client:
        return await Client.connect(
            temporal.address, namespace=temporal.namespace, data_converter=encryption.encrypting(keys)
        )

    return connect


@pytest.fixture(scope="session")
def word() -> Canaries:
    return Canaries()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def system(encrypted: Connect, word: Canaries) -> AsyncIterator[System]:
    """A system with the codec on and every kind of turn ready to be played."""
    client = await encrypted({"k1": os.urandom(32)})
    async with running(*make_agents(word), model=SCRIPT(word), client=client) as started:
        yield started
