"""The agent of these tests' workers: its tools tell which process ran them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from everturn import Agent, Model, tool

NOTES = Path(os.environ["TEST_NOTES"])


@tool
async def whoami() -> str:
    """The id of the process."""
    return str(os.getpid())


@tool(idempotent=True)
async def hang_once() -> str:
    """Notes the process; the first run then hangs, so that it can be killed at leisure."""
    with NOTES.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if len(NOTES.read_text().split()) == 1:
        await asyncio.sleep(300)
    return str(os.getpid())


class Crowd(Agent):
    """The script rides in the message."""

    name = "crowd"
    model = Model("openai/scripted", api_base=os.environ["TEST_MODEL_SERVER"])
    tools = (whoami, hang_once)
