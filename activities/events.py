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


def emit(event: str, **facts: object) -> None:
    """At least once: a crash between an event and what it tells of repeats it."""
    logger.warning("%s %s", event, json.dumps(facts, ensure_ascii=False), extra={"event": event, "facts": facts})
