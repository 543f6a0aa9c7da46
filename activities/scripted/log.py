"""What the scripted server saw: one record per request, and how often each conversation asked."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from everturn.turns import JsonDict

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "cookie", "proxy-authorization"})
HIDDEN = "[hidden]"
CALLER_HEADER = "x-everturn-turn"
"""Header by which a caller says for whom it asks; scripts may go by it."""
_MAX_CONVERSATIONS = 20_000  # bounds the memory of a server that runs for days


@dataclass(slots=True)
class LogRecord:
    """One request. Times are seconds since the epoch.

    headers: lower-case names; the values of secret ones are hidden. status: None until an answer began.
    t_first_byte: when the first byte of the answer was written. t_closed: when the answer ended, by whomever.
    client_closed: the client went away before the answer was complete. complete: its last byte was written.
    """

    model: str
    path: str
    body: JsonDict
    headers: dict[str, str]
    attempt: int = 0
    status: int | None = None
    t_request: float = field(default_factory=time.time)
    t_first_byte: float | None = None
    t_closed: float | None = None
    client_closed: bool = False
    complete: bool = False

    def as_json(self) -> JsonDict:
        return asdict(self)


class RequestLog:
    """The last `size` requests, oldest first."""

    def __init__(self, size: int) -> None:
        self._records: deque[LogRecord] = deque(maxlen=size)

    def add(self, record: LogRecord) -> None:
        self._records.append(record)

    def find(
        self, model: str | None = None, contains: str | None = None, since: float | None = None
    ) -> list[LogRecord]:
        """Records of exactly this model, whose body as JSON contains this text, that arrived at `since` or later."""
        return [
            r
            for r in self._records
            if (model is None or r.model == model)
            and (contains is None or contains in json.dumps(r.body, ensure_ascii=False))
            and (since is None or r.t_request >= since)
        ]


class Attempts:
    """Counts how often the same conversation was sent to the same model: a retry sends exactly the same messages."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], int] = OrderedDict()

    def next(self, model: str, body: Mapping[str, object]) -> int:
        """The number of this attempt, from 1."""
        text = json.dumps([body.get("system"), body.get("messages")], sort_keys=True)
        key = (model, hashlib.sha256(text.encode()).hexdigest())
        count = self._seen.pop(key, 0) + 1
        self._seen[key] = count
        if len(self._seen) > _MAX_CONVERSATIONS:
            self._seen.popitem(last=False)
        return count


def visible_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request with the values of secret ones hidden."""
    return {name: HIDDEN if name in SECRET_HEADERS else value for name, value in headers.items()}
