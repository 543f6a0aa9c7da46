"""`everturn --help`: all commands in plain text, by what they are for.

Each command's own help is drawn by rich, which takes a tenth of a second to load. The list of commands is what people
see first and most often, so it does without.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_WHOLE = 1000
"""Characters: the help of a command in the list is wrapped, not cut."""


class Overview(TyperGroup):
    """A group that writes its help as plain text, its commands under the titles of their panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """See base class."""
        super(TyperGroup, self).format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See base class."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            panels.setdefault(command.rich_help_panel, []).append((name, command.get_short_help_str(_WHOLE)))
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows)
