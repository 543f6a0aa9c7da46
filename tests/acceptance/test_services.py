"""server, setup, worker and doctor, as an operator runs them."""

from __future__ import annotations

import re
import signal
import socket
from contextlib import closing

import pytest

from everturn.worker.ports import LOOPBACK
from tests.services.commands import CommandLine


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_server_says_where_it_is_and_leaves_when_told_to(bare: CommandLine, number: signal.Signals) -> None:
    async with await bare.start("server") as server:
        await server.says(r"Temporal +127\.0\.0\.1:\d+")
        await server.says(r"Web UI +http://127\.0\.0\.1:\d+")
        await server.says(r"State +\.everturn/temporal\.db")
        assert await server.stop(number) == 0
    assert (bare.folder / ".everturn" / "temporal.log").is_file()


async def test_a_second_server_on_the_same_state_is_refused_and_names_the_first(bare: CommandLine) -> None:
    async with await bare.start("server", "--no-ui") as first:
        address = (await first.says(r"Temporal +(\S+:\d+)")).group(1)
        second = await bare.run("server", "--no-ui")
        assert second.code == 3
        assert f"at {address}); stop it" in second.errors


async def test_a_port_that_was_asked_for_and_is_taken_is_an_error(bare: CommandLine) -> None:
    with closing(socket.create_server((LOOPBACK, 0))) as taken:
        port = taken.getsockname()[1]
        refused = await bare.run("server", "--port", str(port))
    assert refused.code == 3
    assert refused.errors.startswith(f"everturn: port {port} for Temporal is in use; ")


async def test_setup_can_be_repeated(system: CommandLine) -> None:
    again = await system.run("setup")
    assert again.code == 0
    assert "all search attributes are registered" in again.output
    assert "schedule everturn-reconcile-everturn: updated; lost turns are looked for every 60 s" in again.output


async def test_setup_leaves_the_schedule_out_and_doctor_misses_it(system: CommandLine) -> None:
    elsewhere = CommandLine(system.folder, {**system.environment, "EVERTURN_TASK_QUEUE": "elsewhere"})
    done = await elsewhere.run("setup", "--no-schedule")
    assert (done.code, "schedule" in done.output) == (0, False)
    report = await elsewhere.run("doctor")
    assert re.search(
        r"WARN +lost turns +no schedule everturn-reconcile-elsewhere .*: run everturn setup", report.output
    )


async def test_a_store_that_was_not_set_up_is_named_with_what_to_do(system: CommandLine) -> None:
    new = CommandLine(system.folder, {**system.environment, "EVERTURN_STORE": "sqlite:///new.db"})
    unready = await new.run("turns")
    assert unready.code == 3
    assert "sqlite:///new.db" in unready.errors
    assert "everturn setup" in unready.errors


async def test_doctor_finds_a_healthy_system_healthy(system: CommandLine) -> None:
    report = await system.run("doctor", "everturn.worker.sample")
    assert report.code == 0, report.output
    assert {line.split()[0] for line in report.output.splitlines()} == {"ok"}
    assert re.search(r"workers +1 on task queue everturn", report.output)
    assert re.search(r"lost turns +looked for every 60 s by the schedule everturn-reconcile-everturn", report.output)


async def test_doctor_says_what_to_do_about_each_failure(bare: CommandLine) -> None:
    (bare.folder / "mine.py").write_text(
        "from everturn import Agent\nclass A(Agent):\n    name = 'a'\n    model = 'anthropic/claude-x'\n"
    )
    lost = CommandLine(bare.folder, {"EVERTURN_TARGET": f"{LOOPBACK}:1"})
    report = await lost.run("doctor", "mine.py")
    assert report.code == 3
    assert re.search(r"FAIL +Temporal +.*connection refused; start it \(everturn server\)", report.output)
    assert re.search(r"FAIL +store +.*everturn setup", report.output)
    assert re.search(r"FAIL +models +.*set ANTHROPIC_API_KEY", report.output)


async def test_an_unreachable_temporal_is_one_line_within_ten_seconds(bare: CommandLine) -> None:
    lost = CommandLine(bare.folder, {"EVERTURN_TARGET": f"{LOOPBACK}:1"})
    refused = await lost.run("submit", "t", "hi", "--agent", "support", patience=10)
    assert (refused.code, refused.output) == (3, "")
    assert refused.errors.splitlines() == [
        "everturn: Temporal cannot be reached at 127.0.0.1:1: connection refused; "
        "start it (everturn server), or set EVERTURN_TARGET"
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("worker", "missing.py"), "there is no file 'missing.py'"),
        (("worker", "json"), "json defines no agent"),
        (("worker",), "Missing argument"),
        (("serve",), "No such command 'serve'"),
        (("submit", "t", "hi"), "Missing option '--agent'"),
        (("submit", "t", "hi", "--agent", "a", "--body", "{"), "--body is no JSON"),
        (("submit", "t", "hi", "--agent", "a", "--body", "[]"), "--body must be a JSON object, not []"),
        (("turns", "--status", "asleep"), "status 'asleep' does not exist"),
        (("server", "--port", "99999"), "--port"),
    ],
)
async def test_bad_usage_is_one_line_and_exit_code_2(
    system: CommandLine, arguments: tuple[str, ...], complaint: str
) -> None:
    refused = await system.run(*arguments)
    assert (refused.code, refused.output) == (2, "")
    assert len(refused.errors.splitlines()) == 1
    assert complaint in refused.errors


async def test_a_traceback_is_shown_only_when_asked_for(bare: CommandLine) -> None:
    quiet = await bare.run("worker", "missing.py")
    loud = await bare.run("worker", "missing.py", "--debug")
    assert "Traceback" not in quiet.errors
    assert "Traceback" in loud.errors
    assert quiet.code == loud.code == 2


async def test_help_lists_every_command(bare: CommandLine) -> None:
    shown = await bare.run("--help")
    assert shown.code == 0
    names = [
        "demo",
        "dev",
        "worker",
        "chat",
        "submit",
        "stream",
        "cancel",
        "inspect",
        "turns",
        "messages",
        "server",
        "setup",
        "doctor",
    ]
    assert [name for name in names if not re.search(rf"^\W*{name} ", shown.output, re.MULTILINE)] == []
