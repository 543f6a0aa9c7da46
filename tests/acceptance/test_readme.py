"""What the README shows is what the examples are, and they run as it says."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.services.commands import CommandLine, clean_environment, free_ports

REPO = Path(__file__).parents[2]
EXAMPLES = ("shop.py", "client.py")


def blocks() -> list[str]:
    """The README's Python code."""
    return [block.split("```", 1)[0] for block in (REPO / "README.md").read_text().split("```python\n")[1:]]


def test_the_readme_shows_the_examples_word_for_word() -> None:
    for name in EXAMPLES:
        code = (REPO / "examples" / name).read_text()
        shown = code.split('"""\n\n', 1)[-1] if code.startswith('"""') else code
        assert f"# {name}\n{shown}" in blocks(), name


def test_the_examples_are_short() -> None:
    for name in EXAMPLES:
        assert len((REPO / "examples" / name).read_text().splitlines()) <= 25, name


async def test_the_readmes_application_talks_to_the_readmes_agent(bare: CommandLine) -> None:
    async with await bare.start("server", "--in-memory", *free_ports()) as server:
        address = (await server.says(r"Temporal\s+(\S+:\d+)")).group(1)
        environment = {"EVERTURN_TARGET": address, "EVERTURN_STORE": "sqlite:///everturn.db"}
        line = CommandLine(bare.folder, environment)
        assert (await line.run("setup")).code == 0
        async with await line.start("worker", str(REPO / "examples" / "shop.py")) as worker:
            await worker.says("polls task queue")
            output = await run_client(bare.folder, environment)
    lines = output.splitlines()
    assert "1 start" in lines[0]
    assert any("tool-output-available" in line and "shipped" in line for line in lines)
    assert any(line.startswith("completed ") and "shipped" in line for line in lines)
    assert lines[-1] == "aborted"


async def run_client(folder: Path, environment: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(REPO / "examples" / "client.py"),
        cwd=folder,
        env=clean_environment(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, errors.decode()
    return output.decode()
