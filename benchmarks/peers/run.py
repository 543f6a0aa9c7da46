"""`python -m benchmarks.peers.run CONTENDER worker|client`: one process of a contender.

A contender's module has `open_client()`, which gives the function that runs a turn, and `run_worker()` if its turns run
in another process.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from types import ModuleType

from benchmarks.peers.protocol import serve


async def client(contender: ModuleType) -> None:
    await serve(await contender.open_client())


def main(module: str, role: str) -> None:
    contender = importlib.import_module(f"benchmarks.peers.{module}")
    asyncio.run(contender.run_worker() if role == "worker" else client(contender))
    sys.stderr.flush()
    os._exit(0)  # native threads of Temporal's SDK can crash an interpreter that is being finalized


if __name__ == "__main__":
    main(*sys.argv[1:])
