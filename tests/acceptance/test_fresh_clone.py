"""The README's first command, as a newcomer runs it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.services.commands import clean_environment

REPO = Path(__file__).parents[2]


@pytest.mark.timeout(900)
async def test_make_demo_in_a_fresh_clone_plays_a_conversation(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    await _run(tmp_path, "git", "clone", "--quiet", str(REPO), str(clone))
    output = await _run(clone, "make", "demo")
    assert "> What is the status of order 1001?" in output
    assert '→ order_status(order_id="1001") = ' in output
    assert "order_status says: found yes" in output
    assert "shipped" in output
    assert "Web UI, while the demo runs: http://127.0.0.1:" in output


async def _run(folder: Path, *command: str) -> str:
    """Runs a command without a terminal and returns what it printed; fails if it fails."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={name: value for name, value in clean_environment({}).items() if not name.startswith(("MAKE", "MFLAGS"))},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 800)
    assert process.returncode == 0, output.decode()
    return output.decode()
