"""Rows that are not what Everturn writes: edited by hand, cut off, from somewhere else."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from everturn.errors import EverturnError, TranscriptDamaged


@contextmanager
def readable(thread_id: str) -> Generator[None]:
    """For code that reads a transcript. Raises TranscriptDamaged where that fails over what the rows hold."""
    try:
        yield
    except EverturnError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise TranscriptDamaged(thread_id, f"{type(error).__name__}: {error}") from error


def check_parts(parts: object, kind: str, name: object) -> None:
    """Raises TypeError, naming whose parts they are, if these are no parts at all."""
    if isinstance(parts, list):
        for part in cast(list[object], parts):
            if not isinstance(part, dict):
                break
        else:
            return
    raise TypeError(f"the parts of {kind} {name!r} are no list of objects")
