"""Ids: how they are made, what they may contain, what is derived from them."""

from __future__ import annotations

import os
import time

from everturn.checks import shown
from everturn.errors import BadInput

MAX_ID_LENGTH = 200  # fits a Temporal workflow id (1,000) and a search attribute keyword with room to spare


def new_request_id() -> str:
    """A sortable id: 48 bits of milliseconds, then 80 random bits, in hexadecimal."""
    return f"{int(time.time() * 1000):012x}{os.urandom(10).hex()}"


def check_id(value: object, what: str) -> str:
    """Returns `value` if it can serve as an id; raises BadInput naming `what` otherwise."""
    if not isinstance(value, str):
        raise BadInput(f"{what} must be a string, not {shown(value)}")
    if not value or len(value) > MAX_ID_LENGTH:
        raise BadInput(f"{what} must have 1 to {MAX_ID_LENGTH} characters, not {len(value)}")
    if not value.isprintable() or value != value.strip():
        raise BadInput(f"{what} {value!r} has control characters or blanks at its ends; use printable characters")
    return value


def is_id(value: object) -> bool:
    """Whether `value` can serve as an id."""
    try:
        check_id(value, "")
    except BadInput:
        return False
    return True


def workflow_id(request_id: str) -> str:
    return f"turn-{request_id}"


def request_id_of(workflow: str) -> str:
    """The other way round."""
    return workflow.removeprefix("turn-")


def user_message_id(request_id: str) -> str:
    return f"{request_id}:user"


def assistant_message_id(request_id: str) -> str:
    return f"{request_id}:assistant"
