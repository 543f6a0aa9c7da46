"""How long a provider asks to wait."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER = 60.0
"""Some providers name the end of an hour or a day; whoever waits is better served by the next attempt."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (number or date), 0 to MAX_RETRY_AFTER; None if neither fits."""
    lower = {name.lower(): value for name, value in headers.items()}
    seconds = _number(lower.get("retry-after-ms"), 0.001)
    if seconds is None:
        seconds = _number(lower.get("retry-after"), 1.0)
    if seconds is None:
        seconds = _seconds_until(lower.get("retry-after"))
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _number(value: str | None, unit: float) -> float | None:
    try:
        number = float(value) * unit if value is not None else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and math.isfinite(number) else None


def _seconds_until(date: str | None) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time() if date else None
    except (ValueError, OverflowError):
        return None
