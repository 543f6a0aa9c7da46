"""Log lines that a hook run leaves in its trace."""

from __future__ import annotations

import json
from typing import Final, Literal, get_args

from pydantic_core import PydanticSerializationError, to_jsonable_python

from everturn.turns import JsonDict

LogLevel = Literal["debug", "info", "warn", "error"]
LEVELS: Final = frozenset(get_args(LogLevel))
MAX_LINES = 50
MAX_LINE_BYTES = 4096
CUT_MARK = "… [cut]"


class HookLog:
    """At most `max_lines` lines; each line's message and data are cut to `max_bytes` together."""

    def __init__(self, tag: str = "hook", max_lines: int = MAX_LINES, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._tag, self._max_lines, self._max_bytes = tag, max_lines, max_bytes
        self._dropped = 0
        self.lines: list[JsonDict] = []

    def add(self, message: object, data: object, level: str) -> None:
        if len(self.lines) >= self._max_lines:
            self.drop(1)
            return
        line: JsonDict = {
            "tag": self._tag,
            "level": level if level in LEVELS else "info",
            "message": cut(str(message), self._max_bytes),
        }
        if data is not None:
            text = _as_text(data)
            room = self._max_bytes - len(line["message"].encode())
            line["data"] = (
                json.loads(text) if len(text.encode()) <= room else cut(text, max(room, len(CUT_MARK.encode())))
            )
        self.lines.append(line)

    def drop(self, count: int) -> None:
        """Notes, on the last line, that lines were left out."""
        if count > 0 and self.lines:
            self._dropped += count
            self.lines[-1]["dropped"] = self._dropped


def cut(text: str, max_bytes: int, mark: str = CUT_MARK) -> str:
    """`text` shortened to `max_bytes` of UTF-8, ending with a mark if it was."""
    raw = text.encode(errors="replace")
    if len(raw) <= max_bytes:
        return raw.decode()
    return raw[: max(0, max_bytes - len(mark.encode()))].decode(errors="ignore") + mark


def _as_text(data: object) -> str:
    try:
        return json.dumps(to_jsonable_python(data, fallback=repr), ensure_ascii=False)
    except (PydanticSerializationError, ValueError, RecursionError):
        return json.dumps(repr(data))
