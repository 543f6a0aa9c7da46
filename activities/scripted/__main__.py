"""`python -m everturn.activities.scripted --port N`: the server alone; prints its address as one JSON line."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys

from everturn.activities.scripted.server import ScriptedModelServer


async def serve(host: str, port: int) -> None:
    """Runs the server until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = ScriptedModelServer()
    await server.start(host, port)
    try:
        sys.stdout.write(json.dumps({"base_url": server.base_url, "origin": server.origin}) + "\n")
        sys.stdout.flush()
        await stop.wait()
    finally:
        await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m everturn.activities.scripted", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    given = parser.parse_args()
    asyncio.run(serve(given.host, given.port))


if __name__ == "__main__":
    main()
