"""Changes of a file, told by the kernel: Linux's inotify, which Python's library does not have."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path
from typing import Final, Self

_IN_MODIFY: Final = 0x2
_BUFFER: Final = 64 * 1024


class FileChanges:
    """`descriptor` is readable once the file was written to, until `forget`."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """None where the system cannot tell: it is no Linux, or has no watches left."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
            os.close(descriptor)
            return None
        return cls(descriptor)

    def forget(self) -> None:
        """The changes so far are known."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, _BUFFER)

    def close(self) -> None:
        os.close(self.descriptor)
