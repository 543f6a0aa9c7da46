"""The bell that wakes the tail's thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from everturn.store.bell import Bell

LIMIT = 30.0
NONE = 0.0


@pytest.fixture
def bell() -> Iterator[Bell]:
    made = Bell()
    yield made
    made.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_a_ring_from_another_thread_ends_the_wait(bell: Bell) -> None:
    threading.Timer(0.01, bell.ring).start()
    assert bell.wait(LIMIT) is False


def test_rings_before_the_wait_end_it_and_never_block_the_ringer(bell: Bell) -> None:
    for _ in range(100_000):  # more than the rope holds
        bell.ring()
    bell.wait(None)


def test_a_readable_descriptor_ends_the_wait_only_while_it_is_asked_for(bell: Bell, pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"x")
    assert bell.wait(LIMIT, pipe[0]) is True
    assert bell.wait(NONE) is False
    assert bell.wait(LIMIT, pipe[0]) is True
    os.read(pipe[0], 1)
    assert bell.wait(NONE, pipe[0]) is False


def test_both_at_once_are_both_noticed(bell: Bell, pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"x")
    bell.ring()
    assert bell.wait(LIMIT, pipe[0]) is True
    os.read(pipe[0], 1)
    assert bell.wait(NONE, pipe[0]) is False
