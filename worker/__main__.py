"""Entry point of the `everturn` command."""

from __future__ import annotations

from typing import NoReturn

from everturn.worker.exit import guarded_exit


def main() -> NoReturn:
    """Runs the command line and leaves through the guarded exit."""
    from everturn.worker.cli.app import run_command_line

    guarded_exit(run_command_line())


if __name__ == "__main__":
    main()
