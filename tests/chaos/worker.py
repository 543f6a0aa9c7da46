"""The worker process of the chaos tests: as `run_worker` makes it, with places where it can be struck."""

from __future__ import annotations

import logging
import os
import sys

from temporalio.client import Client

from everturn import run_worker
from everturn.settings import Settings
from tests.chaos.seams import StruckActivities, StruckStore


async def work() -> None:
    """Runs turns until SIGTERM, or until the fault of this process."""
    from tests.chaos.agents import AGENTS  # reads the environment, which differs between forks of one parent

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    settings = Settings()
    store = await StruckStore.open(os.environ["EVERTURN_STORE"], flush=settings.stream_flush)
    interceptors = [StruckActivities()]
    client = await Client.connect(os.environ["EVERTURN_TARGET"], interceptors=interceptors)
    await run_worker(AGENTS, client=client, task_queue=settings.task_queue, store=store)
    await store.close()
