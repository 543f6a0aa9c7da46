"""Tool outputs as JSON."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_jsonable_python

from everturn.hooks.log import cut

MAX_MODEL_OUTPUT_BYTES: Final = 1024 * 1024
"""A tool output over this is stored whole and shown to the model cut, with a mark."""
MAX_ERROR_BYTES: Final = 4096


class NotJsonError(TypeError):
    """A tool returned something that has no JSON form; the message names the type."""


def as_json(value: object) -> Any:
    """`value` as plain JSON data: pydantic models, dataclasses, dates, sets, enums, bytes (text, or base64) included.

    Raises NotJsonError.
    """
    try:
        plain = to_jsonable_python(_bytes_as_text(value), inf_nan_mode="strings")
        json.dumps(plain, allow_nan=False).encode()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise NotJsonError(f"the tool returned {type(value).__name__}, which has no JSON form: {error}") from error
    return plain


def for_model(value: object) -> tuple[object, bool]:
    """What the model gets to see of an output, and whether it had to be cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    size = len(text.encode(errors="replace"))
    if size <= MAX_MODEL_OUTPUT_BYTES:
        return value, False
    return cut(text, MAX_MODEL_OUTPUT_BYTES, f"\n[cut: the whole output has {size:,} bytes]"), True


def error_text(error: BaseException) -> str:
    """One message without a traceback, at most 4 KB."""
    text = str(error).strip()
    name = type(error).__name__
    return cut(f"{name}: {text}" if text else name, MAX_ERROR_BYTES)


def _bytes_as_text(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return base64.b64encode(raw).decode()
    return value
