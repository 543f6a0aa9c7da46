"""One server per state file: a lock that lives exactly as long as the server process."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from everturn.errors import ServerFailed

DYING_SERVER = 2.0  # a server whose parent was killed needs some milliseconds to let go
POLL = 0.05


async def lock_state(state_file: Path) -> int:
    """An open, inheritable file descriptor that holds the lock of `state_file`.

    Hand it to the server process and close it here: the lock then ends with that process, however it ends.
    Raises ServerFailed if another server has the file.
    """
    if sys.platform == "win32":
        raise ServerFailed("the embedded server needs Linux or macOS to guard its state; on Windows use WSL")
    import fcntl

    path = state_file.with_name(state_file.name + ".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + DYING_SERVER
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() < deadline:
                await asyncio.sleep(POLL)
                continue
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise ServerFailed(
                f"the state file {state_file} belongs to another Temporal server ({holder or 'unknown'}); "
                "stop it, connect to it, or choose another state file"
            ) from error
        os.set_inheritable(descriptor, True)
        return descriptor


def sign_lock(descriptor: int, holder: str) -> None:
    """Writes who holds the lock, for the error message of whoever comes second."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, holder.encode(), 0)
