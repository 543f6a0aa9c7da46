"""Short texts for Temporal's history and Web UI. With previews off they name things and show no content."""

from __future__ import annotations

import hashlib
import json

from everturn.hooks.log import cut
from everturn.turns import JsonDict

LABEL_LENGTH = 120
PREVIEW_BYTES = 512
RESULT_BYTES = 32 * 1024


def call_label(name: str, given: JsonDict | None, *, previews: bool) -> str:
    """`get_weather(city=Paris)`, at most 120 characters."""
    if not previews or given is None:
        return name if len(name) <= LABEL_LENGTH else name[: LABEL_LENGTH - 1] + "…"
    arguments = ", ".join(f"{key}={_short(value)}" for key, value in given.items())
    label = " ".join(f"{name}({arguments})".split())
    return label if len(label) <= LABEL_LENGTH else label[: LABEL_LENGTH - 2] + "…)"


def preview(text: str, *, previews: bool) -> str:
    return cut(text, PREVIEW_BYTES, "…") if previews else ""


def small_enough(value: object) -> bool:
    """Whether a value may stand in a turn's result."""
    return len(json.dumps(value, ensure_ascii=False, default=repr).encode(errors="replace")) <= RESULT_BYTES


def fingerprint(name: str, given: object, error: str) -> str:
    """Equal for two calls that failed in the same way with the same input."""
    return hashlib.sha256(json.dumps([name, given, error], sort_keys=True, default=repr).encode()).hexdigest()[:16]


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 40 else text[:39] + "…"
