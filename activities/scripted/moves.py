"""The vocabulary of a script: what a model says, and what happens to the bytes on their way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from everturn.turns import JsonDict


@dataclass(frozen=True, slots=True)
class Say:
    """A piece of the answer's text: one chunk, one token of usage."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """A piece of reasoning; with a signature it ends a signed block (Anthropic)."""

    text: str = ""
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class CallPart:
    """A fragment of a tool call. provider: further fields of the tool call object, as Gemini has them."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    provider: JsonDict | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """A piece of a refusal (OpenAI's `delta.refusal`)."""

    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The finish reason in OpenAI's words. output_tokens: usage to report instead of the counted one."""

    reason: str
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Data:
    """A JSON event exactly as given."""

    body: JsonDict


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes exactly as given."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Open:
    """Send the head of the answer now."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Write nothing for a while; for ever if `seconds` is None (until the client or the server goes)."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Style:
    """How the events from here on are written. split: each is cut inside a character, in two TCP writes."""

    newline: str = "\n"
    split: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """The answer ends here. eof: a correct end of the HTTP body; done: `[DONE]` and then that; fin: the connection
    is closed inside the body; reset: by a TCP reset."""

    how: Literal["eof", "done", "fin", "reset"]


@dataclass(frozen=True, slots=True)
class Fail:
    """An error answer instead of a stream. type and code: fields of the error object."""

    status: int
    message: str
    type: str = "error"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class FailInStream:
    """An error event inside a stream that began well; the stream then ends."""

    message: str
    type: str = "server_error"
    code: str | int | None = None


Content = Say | Think | CallPart | Refuse | Finish
Move = Content | Data | Raw | Open | Pause | Style | Cut | Fail | FailInStream
