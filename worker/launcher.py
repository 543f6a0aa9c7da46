"""Runs a program that must not outlive its parent; started as a script, with the standard library only.

    python -I -S launcher.py PARENT_PID PROGRAM ARGUMENT…

On Linux the kernel kills the program when its parent is gone, even by SIGKILL, and this process becomes the
program. Elsewhere it stays in between: standard input is a pipe from the parent, and its end, at the latest when
the parent dies, ends the program. The Linux way is not a `preexec_fn`, because code that runs between fork and
exec can deadlock in a process with native threads.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
from types import FrameType

PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>
PARENT_IS_GONE = 75


def main(arguments: list[str]) -> int:
    parent, program = int(arguments[0]), arguments[1:]
    if platform.system() == "Linux":
        die_with(parent, signal.SIGKILL)
        os.execv(program[0], program)  # noqa: S606 - no shell is wanted
    return _supervise(program)


def die_with(parent: int, number: signal.Signals) -> None:
    """The kernel shall send this process the signal when its parent is gone (Linux)."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it died before the kernel was told to watch it
        sys.exit(PARENT_IS_GONE)


def _supervise(program: list[str]) -> int:
    child = subprocess.Popen(program, stdin=subprocess.DEVNULL, close_fds=False)  # noqa: S603 - the parent's own command

    def end_with_signal(_number: int, _frame: FrameType | None) -> None:
        child.terminate()

    def end_with_input() -> None:
        while os.read(0, 4096):
            continue
        child.terminate()

    signal.signal(signal.SIGTERM, end_with_signal)
    threading.Thread(target=end_with_input, daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
