"""Tool outputs as JSON."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_json

from everturn.activities.sizes import MAX_TOOL_INPUT_BYTES
from everturn.checks import said
from everturn.hooks.log import cut
from everturn.hooks.tools import ToolInputError

MAX_MODEL_OUTPUT_BYTES: Final = 1024 * 1024
"""A tool output over this is stored whole and shown to the model cut, with a mark."""
MAX_ERROR_BYTES: Final = 4096


class NotJsonError(TypeError):
    """A tool returned something that has no JSON form; the message names the type."""


def as_json(value: object) -> Any:
    """`value` as plain JSON data: pydantic models, dataclasses, dates, sets, enums, NaN ("NaN") and bytes included.

    Bytes become text if all of them are UTF-8, else base64 in its URL-safe form. Raises NotJsonError.
    """
    kind = type(value).__name__
    plain: object = value.tobytes() if isinstance(value, memoryview) else value  # pyright: ignore
    try:
        try:
            return json.loads(to_json(plain, inf_nan_mode="strings", bytes_mode="utf8"))
        except PydanticSerializationError:
            return json.loads(to_json(plain, inf_nan_mode="strings", bytes_mode="base64"))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise NotJsonError(f"the tool returned {kind}, which has no JSON form: {error}") from error


def check_input_size(tool: str, given: object) -> None:
    """Raises ToolInputError for arguments that are too large for any tool."""
    size = len(to_json(given))
    if size > MAX_TOOL_INPUT_BYTES:
        raise ToolInputError(
            f"the arguments of {tool} have {size:,} bytes; the limit is {MAX_TOOL_INPUT_BYTES:,}: make them shorter"
        )


def for_model(value: object) -> tuple[object, bool]:
    """What the model gets to see of an output, and whether it had to be cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    size = len(text.encode(errors="replace"))
    if size <= MAX_MODEL_OUTPUT_BYTES:
        return value, False
    return cut(text, MAX_MODEL_OUTPUT_BYTES, f"\n[cut: the whole output has {size:,} bytes]"), True


def error_text(error: BaseException) -> str:
    """One message without a traceback, at most 4 KB."""
    text = said(error).strip()
    name = type(error).__name__
    return cut(f"{name}: {text}" if text else name, MAX_ERROR_BYTES)
