"""Server-sent events from bytes that arrive in any pieces."""

from __future__ import annotations

from typing import Final

MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
"""No chunk of an answer is larger, pictures included; a line without end would fill the memory."""


class EventTooLarge(Exception):
    """A server sends an event without an end."""


class EventReader:
    """Cuts at line ends only, which are ASCII, so characters of several bytes are never cut."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_return = False
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[tuple[bytes, bytes]]:
        """The events that this piece completes, each as its name (mostly empty) and its data. Raises EventTooLarge."""
        if self._after_return or b"\r" in piece:
            piece = self._plain_line_ends(piece)
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_EVENT_BYTES:
            raise EventTooLarge(f"an event of the stream has more than {MAX_EVENT_BYTES} bytes")
        events: list[tuple[bytes, bytes]] = []
        for line in lines:
            if line:
                self._take(line)
            else:
                if self._data:
                    events.append((self._name, b"\n".join(self._data)))
                    self._data = []
                self._name = b""
        return events

    def finish(self) -> list[tuple[bytes, bytes]]:
        """The event that the end of the stream completes: not every server ends its last one with an empty line."""
        return self.feed(b"\n\n")

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line.startswith(b"event:"):
            self._name = line[6:].strip()

    def _plain_line_ends(self, piece: bytes) -> bytes:
        """CR LF, LF and CR all end a line; a CR LF may be cut in the middle."""
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
