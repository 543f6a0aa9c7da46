"""Structured events for an operator's logs: the logger `everturn.events`, fixed names, facts as fields.

A record has the event's name and its facts as JSON in its message, and as `event` and `facts` for handlers.
"""

from __future__ import annotations

import json
import logging
from typing import Final

logger = logging.getLogger("everturn.events")

REQUEST_FAILED: Final = "chat:request:failed"
STREAM_STALLED: Final = "chat:stream:stalled"
LOOP_STALLED: Final = "worker:loop:stalled"
STEP_FINISHED: Final = "chat:step:finished"
STEP_FAILED: Final = "chat:step:failed"
TOOL_FINISHED: Final = "chat:tool:finished"


def emit(event: str, **facts: object) -> None:
    """Something is wrong. At least once: a crash between an event and what it tells of repeats it."""
    _log(logging.WARNING, event, facts)


def tell(event: str, **facts: object) -> None:
    """Something went as it should, or a part of a turn failed that may be tried again; level info."""
    _log(logging.INFO, event, facts)


def _log(level: int, event: str, facts: dict[str, object]) -> None:
    if logger.isEnabledFor(level):
        text = json.dumps(facts, ensure_ascii=False)
        logger.log(level, "%s %s", event, text, extra={"event": event, "facts": facts})
