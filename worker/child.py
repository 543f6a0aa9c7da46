"""Child processes that never outlive this one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from everturn.worker import launcher

log = logging.getLogger(__name__)


async def spawn_child(
    program: str,
    arguments: Sequence[str],
    output: IO[bytes] | None = None,
    pass_fds: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> asyncio.subprocess.Process:
    """Starts `program` (a path), which ends when this process ends, in whatever way.

    output: where its standard output and error go, None for ours. environment: None for ours. Call it from a thread
    that lives on, usually the main one: Linux ends the child with the thread that made it.
    """
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), program),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=output,
        stderr=None if output is None else asyncio.subprocess.STDOUT,
        pass_fds=tuple(pass_fds),
        env=environment,
        start_new_session=True,  # Ctrl-C in the terminal is for us: we decide when the child has to go
    )


async def end_child(process: asyncio.subprocess.Process, patience: float, what: str) -> None:
    """Ends a child: orderly, and by force after `patience` seconds. what: its name, for the log."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(patience):
            await process.wait()
    except TimeoutError:
        log.warning("%s did not stop within %g s and was killed", what, patience)
        process.kill()
        await process.wait()
