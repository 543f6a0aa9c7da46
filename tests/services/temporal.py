"""One real Temporal server per test session, on free ports and in memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from temporalio.client import Client

from everturn.worker.server import EmbeddedServer
from everturn.worker.server_command import ServerOptions

ELSEWHERE = "EVERTURN_TEST_TEMPORAL"
"""host:port of a running server to test against, instead of starting one."""


@dataclass(frozen=True, slots=True)
class TemporalService:
    """Where the tests' Temporal is. web_ui: None if its address is not known."""

    address: str
    web_ui: str | None
    namespace: str = "default"

    async def connect(self) -> Client:
        """A client of its own, for tests that must not share one."""
        return await Client.connect(self.address, namespace=self.namespace)


@asynccontextmanager
async def temporal_service() -> AsyncIterator[TemporalService]:
    if elsewhere := os.environ.get(ELSEWHERE):
        yield TemporalService(elsewhere, None)
        return
    async with EmbeddedServer(ServerOptions(state_file=None, time_skipping=True)) as server:
        yield TemporalService(server.address, server.web_ui)
