"""Estimates of a prompt's size, where no counter of the author's own is given."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Final, cast

from everturn.checks import check_count
from everturn.turns import JsonDict

logger = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN: Final = 4
"""The usual rule of thumb for English; other scripts need more tokens, so an author may give a counter."""
TOKENS_PER_FILE: Final = 1000
"""An image or file counts by what providers charge for one, not by the length of its data."""


def count_tokens(counter: Callable[[list[JsonDict]], int] | None, messages: list[JsonDict]) -> int:
    """What the author's counter says; the estimate without one, and if it fails: a prompt that is sent although it may
    be too long is worth more than a turn that fails."""
    if counter is None:
        return estimate_tokens(messages)
    try:
        return check_count(counter(messages), "the tokens of a prompt")
    except Exception:
        logger.warning("the token counter of an agent failed; the prompt is estimated", exc_info=True)
        return estimate_tokens(messages)


def estimate_tokens(messages: list[JsonDict]) -> int:
    """About how many tokens these messages (OpenAI's chat format) have."""
    return sum(_tokens(message) for message in messages)


def _tokens(message: JsonDict) -> int:
    content = message.get("content")
    files = 0
    if isinstance(content, list):
        pieces = cast(list[JsonDict], content)
        files = sum(1 for part in pieces if part.get("type") != "text")
        content = "".join(str(part.get("text", "")) for part in pieces)
    calls = json.dumps(message.get("tool_calls") or "", ensure_ascii=False)
    return 4 + (len(str(content or "")) + len(calls)) // CHARACTERS_PER_TOKEN + files * TOKENS_PER_FILE
