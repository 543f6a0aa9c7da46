"""Worker processes with toy work: `python toys.py KIND`; each says its number and its process id."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from everturn.worker.processes import WorkerProcesses


def work(kind: str, number: int, ready: Callable[[], None]) -> int:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: None if kind == "deaf" else stop.set())
    if kind == "unable":
        return 7
    ready()
    print(f"works {number} {os.getpid()}", flush=True)
    if kind == "mortal" and number == 1:
        return 1
    while not stop.wait(0.05):
        continue
    return 0


def main(kind: str) -> int:
    if kind == "threaded":
        threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
    processes = WorkerProcesses(2, functools.partial(work, kind), patience=1.0)
    return processes.run()


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(code)
