"""The guarded exit, in real processes that have opened a Temporal client."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from tests.services.temporal import TemporalService

SCRIPT = """
import asyncio, atexit, sys
from temporalio.client import Client
from everturn.worker.exit import guarded_exit

async def main():
    client = await Client.connect(sys.argv[1])
    await client.count_workflows()

atexit.register(lambda: print("handler ran"))
asyncio.run(main())
print("work done", end="")
guarded_exit(7)
"""


async def _run(*arguments: str, close_output: bool = False) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    if close_output:
        assert process.stdout is not None
        process.stdout._transport.close()  # type: ignore[attr-defined] - there is no public way to close a reader
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def test_twenty_processes_that_used_a_client_all_leave_with_their_own_exit_code(
    temporal: TemporalService,
) -> None:
    for _ in range(10):
        runs = await asyncio.gather(*(_run(SCRIPT, temporal.address) for _ in range(2)))
        assert runs == [(7, "work donehandler ran\n", "")] * 2


@pytest.mark.parametrize("handler", ["raise RuntimeError('late')", "sys.exit(3)"])
async def test_a_failing_exit_handler_does_not_change_the_exit_code(handler: str) -> None:
    script = f"""
import atexit, sys
from everturn.worker.exit import guarded_exit

@atexit.register
def late():
    {handler}

guarded_exit(5)
"""
    code, _, _ = await _run(script)
    assert code == 5


async def test_a_reader_that_left_early_is_no_error() -> None:
    script = "import sys\nfrom everturn.worker.exit import guarded_exit\nprint('x' * 10)\nguarded_exit(0)"
    code, _, errors = await _run(script, close_output=True)
    assert (code, errors) == (0, "")
