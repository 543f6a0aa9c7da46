"""Records the histories that test_replay.py replays. Run by hand, from the repository's root:

    .venv/bin/python -m tests.replay.record            # what is not recorded yet
    .venv/bin/python -m tests.replay.record NAME…      # these, again

A recorded history stands for turns that run somewhere in the world: add new ones, and record one again only as long as
no release has turns of that kind.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import uuid
from functools import partial
from pathlib import Path
from typing import cast

from everturn.activities.models.lanes import ModelLanes
from everturn.activities.scripted.server import ScriptedModelServer
from everturn.ids import workflow_id
from everturn.worker.exit import guarded_exit
from tests.integration.turns.lab import eventually, running_lab, scripted
from tests.replay.agents import agents
from tests.replay.paths import PATHS, closed
from tests.services.temporal import temporal_service

HISTORIES = Path(__file__).parent / "histories"
_PRIVATE = {"identity": "worker", "stackTrace": ""}
"""Fields that tell of the machine on which a history was recorded, and replay does not read."""


def without_private(value: object) -> object:
    """The history's JSON without what it tells of this machine."""
    if isinstance(value, list):
        return [without_private(item) for item in cast(list[object], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, object], value)
    return {name: _PRIVATE[name] if name in _PRIVATE else without_private(item) for name, item in fields.items()}


async def record(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with temporal_service() as temporal, ScriptedModelServer() as server:
            await ModelLanes().warm_up([scripted(server)])
            client, queue = await temporal.connect(), f"record-{uuid.uuid4().hex[:8]}"
            async with running_lab(client, server, queue, f"sqlite:///{folder}/store.db", agents(server)) as lab:
                for name in names:
                    taken = await PATHS[name](lab)
                    recorded = taken if isinstance(taken, str) else workflow_id(taken.request_id)
                    await eventually(partial(closed, lab, recorded), f"{name}: the workflow {recorded} is closed")
                    history = await client.get_workflow_handle(recorded).fetch_history()
                    content = without_private(json.loads(history.to_json()))
                    (HISTORIES / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
                    print(f"{name}: {len(history.events)} events")


def main() -> None:
    logging.basicConfig(level=logging.ERROR)
    HISTORIES.mkdir(exist_ok=True)
    missing = [name for name in PATHS if not (HISTORIES / f"{name}.json").exists()]
    asyncio.run(record(sys.argv[1:] or missing))
    guarded_exit(0)


if __name__ == "__main__":
    main()
