"""The guarded way out of a short-lived process that has opened a Temporal client.

The SDK's native threads call into Python when they end. When the interpreter is being finalized at that moment, it
aborts ("PyGILState_Release: thread state … must be current"): 22 of 60 short scripts died like this, with a core dump
and exit code 134 after their work was done. So a command of ours closes what it opened, runs the exit handlers
that others registered, flushes its output, and leaves without finalizing the interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
from typing import NoReturn

EXIT_OUTPUT_LOST = 74  # EX_IOERR of <sysexits.h>


def guarded_exit(code: int) -> NoReturn:
    """Ends this process with `code`, after exit handlers and a flush; never returns and never raises.

    A reader that closed standard output early (`everturn … | head -1`) is no error.
    """
    try:
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage] - there is no public call, and os._exit skips them
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BrokenPipeError, ValueError):
                stream.flush()
    except OSError:  # a full disk under redirected output, say: the caller must not believe that all went well
        code = code or EXIT_OUTPUT_LOST
    finally:
        os._exit(code)
