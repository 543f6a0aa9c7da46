"""The environments of the contenders, each with the packages of its lock file beside their modules.

    python -m benchmarks.environments          makes what is missing
    python -m benchmarks.environments --lock   resolves the lock files anew

The lock files name versions and no hashes: hundreds of hashes a file would be read by nobody, and what these
environments run is a benchmark on loopback.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.programs import ROOT

FOLDER: Final = ROOT / ".bench"
LOCKS: Final = Path(__file__).with_name("peers")
_LIMIT: Final = 300.0
"""Seconds for one environment; a slow network then costs the comparison one contender and not its time."""

WANTED: Final = {
    "langgraph": ["temporalio==1.35.*", "temporalio-langgraph", "langgraph", "openai"],
    "openai_agents": ["temporalio==1.35.*", "temporalio-openai-agents", "openai-agents"],
    "pydantic_ai": ["temporalio==1.35.*", "pydantic-ai-slim[openai,temporal]"],
    "dbos": ["pydantic-ai-slim[openai,dbos]"],
    "actant": ["actant", "openai"],
    "chart": ["matplotlib"],
}
"""What each needs; `chart` draws the results. All that use Temporal use the SDK that Everturn uses."""


def python_of(environment: str | None) -> str:
    """The interpreter of an environment; None is Everturn's own."""
    return sys.executable if environment is None else str(FOLDER / environment / "bin" / "python")


def make(environment: str) -> str | None:
    """Makes an environment if its lock file has changed since; returns what went wrong, None if it is there."""
    lock, folder = LOCKS / f"{environment}.lock", FOLDER / environment
    stamp = folder / "installed.lock"
    if stamp.exists() and stamp.read_text() == lock.read_text():
        return None
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run(sys.executable, "-m", "venv", str(folder))
        _run(python_of(environment), "-m", "pip", "install", "--quiet", "--requirement", str(lock))
    except subprocess.CalledProcessError as error:
        return f"{environment} could not be installed: {error.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        return f"{environment} could not be installed within {_LIMIT:g} s"
    shutil.copyfile(lock, stamp)
    return None


def lock_all() -> None:
    """Resolves all lock files, for every Python from 3.11 on."""
    tools = FOLDER / "tools"
    _run(sys.executable, "-m", "venv", str(tools))
    _run(str(tools / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv")
    for environment, packages in WANTED.items():
        wishes = FOLDER / f"{environment}.in"
        wishes.write_text("\n".join(packages) + "\n")
        options = ["--quiet", "--upgrade", "--universal", "--python-version", "3.11", "--no-header", "--no-annotate"]
        options += ["--no-emit-index-url", "--no-emit-find-links", "--output-file", str(LOCKS / f"{environment}.lock")]
        _run(str(tools / "bin" / "uv"), "pip", "compile", *options, str(wishes))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LIMIT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lock", action="store_true")
    FOLDER.mkdir(exist_ok=True)
    if parser.parse_args().lock:
        lock_all()
        return 0
    problems = [problem for environment in WANTED if (problem := make(environment))]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
