"""TCP ports for services that run on this machine only."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from everturn.errors import ServerFailed

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Preferred:
    """A port to use if it is free; another one is fine."""

    port: int


PortWish = int | Preferred | None
"""A number must be had, a Preferred may be replaced, None is any free port."""


def choose_port(wish: PortWish, what: str) -> int:
    """A port that nobody listens on now.

    Raises ServerFailed, naming `what`, if a port that must be had is taken.
    """
    if isinstance(wish, Preferred):
        return wish.port if is_free(wish.port) else _any_free_port()
    if wish is None:
        return _any_free_port()
    if not is_free(wish):
        raise ServerFailed(
            f"port {wish} for {what} is in use; stop the program that listens there, or choose another port"
        )
    return wish


def is_free(port: int) -> bool:
    """True if this machine's loopback address lets us listen on `port`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError):  # taken, reserved, or no port number at all
            return False
        return True


def _any_free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
