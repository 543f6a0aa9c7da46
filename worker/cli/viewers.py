"""Three ways to show a stream: to a terminal, to a pipe, and to a machine."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from everturn.chunks import Chunk
from everturn.worker.cli.screen import Block, NoticeBlock, Screen, TextBlock, ToolBlock

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

SHORT_VALUE = 400  # characters of a tool's input or result that a person wants to see in passing
REFRESHES_PER_SECOND = 12


class Viewer(Protocol):
    """Shows the chunks of one turn, in order."""

    def __enter__(self) -> Viewer: ...
    def __exit__(self, *_: object) -> None: ...
    def show(self, chunk: Chunk) -> None: ...

    def note(self, text: str) -> None:
        """A sentence to the person at the terminal, kept out of piped output."""
        ...


def make_viewer(as_json: bool = False) -> Viewer:
    """The viewer that fits standard output."""
    if as_json:
        return JsonViewer(sys.stdout)
    if sys.stdout.isatty():
        from rich.console import Console

        return TerminalViewer(Console())
    return PlainViewer(sys.stdout)


class JsonViewer:
    """One JSON object per line and chunk."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def __enter__(self) -> JsonViewer:
        return self

    def __exit__(self, *_: object) -> None:
        self._output.flush()

    def show(self, chunk: Chunk) -> None:
        self._output.write(json.dumps(chunk.as_json(), ensure_ascii=False) + "\n")
        self._output.flush()

    def note(self, text: str) -> None:
        sys.stderr.write(f"everturn: {text}\n")


class PlainViewer:
    """Text for files and pipes. A step is written when it is done: what was written cannot be taken back."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._screen = Screen()
        self._written = 0

    def __enter__(self) -> PlainViewer:
        return self

    def __exit__(self, *_: object) -> None:
        self._output.flush()

    def show(self, chunk: Chunk) -> None:
        self._screen = self._screen.advance(chunk)
        for block in self._screen.blocks[self._written : self._screen.settled]:
            self._output.write(plain_text(block) + "\n")
            self._output.flush()
        self._written = self._screen.settled

    def note(self, text: str) -> None:
        sys.stderr.write(f"everturn: {text}\n")


class TerminalViewer:
    """Tokens as they come, below a spinner while nothing comes; done steps move into the terminal's own history."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._screen = Screen()
        self._written = 0
        self._live: Live | None = None

    def __enter__(self) -> TerminalViewer:
        from rich.live import Live

        self._live = Live(
            self._picture(), console=self._console, refresh_per_second=REFRESHES_PER_SECOND, transient=True
        )
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, chunk: Chunk) -> None:
        self._screen = self._screen.advance(chunk)
        for block in self._screen.blocks[self._written : self._screen.settled]:
            self._console.print(rich_block(block))
        self._written = self._screen.settled
        if self._live is not None:
            self._live.update(self._picture())

    def note(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(harmless(text), style="yellow"))

    def _picture(self) -> Group:
        """The step that is still in motion: its last lines, as many as fit, and the spinner."""
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        moving = Text("\n").join(rich_block(block) for block in self._screen.blocks[self._written :])
        room = max(self._console.height - 4, 3)
        lines = moving.wrap(self._console, self._console.width)[-room:]
        waiting = self._screen.waiting
        return Group(*lines, *([Spinner("dots", text=Text(waiting, style="dim"))] if waiting else []))


def plain_text(block: Block) -> str:
    """A block as plain text."""
    match block:
        case TextBlock():
            return block.text if block.kind == "text" else f"(reasoning) {block.text}"
        case ToolBlock():
            return f"→ {block.name}({short(block.input)}) = {_outcome(block)}"
        case NoticeBlock():
            return f"({block.text})"


def rich_block(block: Block) -> Text:
    """A block in colours."""
    from rich.text import Text

    match block:
        case TextBlock():
            return Text(harmless(block.text), style="dim italic" if block.kind == "reasoning" else "")
        case ToolBlock():
            style = "red" if block.state == "failed" else "green"
            return Text.assemble(
                ("→ ", "dim"),
                (harmless(block.name), "bold cyan"),
                harmless(f"({short(block.input)}) "),
                (harmless(_outcome(block)), style),
            )
        case NoticeBlock():
            return Text(harmless(block.text), style="yellow")


def _outcome(block: ToolBlock) -> str:
    match block.state:
        case "done":
            return short(block.output)
        case "failed":
            return f"failed: {block.error}"
        case _:
            return "…" if block.progress is None else f"… {short(block.progress)}"


def short(value: object) -> str:
    """A value as one short line; the arguments of a call without their outer braces."""
    if isinstance(value, dict):
        fields = cast(dict[object, object], value)
        text = ", ".join(f"{key}={_json(item)}" for key, item in fields.items())
    else:
        text = "" if value is None else _json(value)
    return text if len(text) <= SHORT_VALUE else text[: SHORT_VALUE - 1] + "…"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def harmless(text: str) -> str:
    """Text without control characters: words of a model or a tool must not steer the terminal."""
    return "".join(c if c in "\n\t" or not _is_control(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"
