"""docs/protocol.md and the code agree on every name that outlives a process."""

from __future__ import annotations

import pytest

from tests.unit import protocol
from tests.unit.protocol import Names, of_the_code, of_the_page

ADVICE = (
    "names are a protocol. A new one: list it in docs/protocol.md. One that is gone or renamed: turns that run, stored "
    "rows and recorded histories still use the old name; bring it back, or follow docs/changing-the-workflow.md"
)


def differences(code: Names, page: Names) -> list[str]:
    """One line for each name that only one of the two has."""
    found: list[str] = []
    for section in sorted(code.keys() | page.keys()):
        here, there = code.get(section, set()), page.get(section, set())
        found += [f"{section}: {name} is not on the page" for name in sorted(here - there)]
        found += [f"{section}: {name} is not in the code" for name in sorted(there - here)]
    return found


def test_every_lasting_name_of_the_code_is_on_the_page_and_the_other_way_round() -> None:
    found = differences(of_the_code(), of_the_page())
    assert found == [], ADVICE


@pytest.mark.parametrize(
    ("section", "old"),
    [
        ("Workflows", "EverturnTurn.cancel_chat"),
        ("Activities", "everturn.begin"),
        ("Chunk types", "text-delta"),
        ("Tables and columns", "turns.status"),
        ("Error types", "lost"),
        ("Search attributes", "EverturnThread"),
    ],
)
def test_a_renamed_name_is_found_on_both_sides(section: str, old: str) -> None:
    page = of_the_code()
    code = {**page, section: (page[section] - {old}) | {"renamed"}}
    assert differences(code, page) == [
        f"{section}: renamed is not on the page",
        f"{section}: {old} is not in the code",
    ]


@pytest.mark.parametrize(
    ("source", "types"),
    [
        ('TurnError("new_type", message)', ["new_type"]),
        ('raise ApplicationError("words", type="New", non_retryable=True)', ["New"]),
        ("TurnError(LOST, reason)", ["lost"]),
        ('TurnError(cause.type or "internal", cause.message)', ["internal"]),
        ('raise ModelFailure("fatal", "new_code", "words")', ["new_code"]),
        ('ROW = ("transient", "new_row", "words of a table")', ["new_row"]),
        ("TurnError(kind, message)", []),
        ('TurnOutcome(request_id, "", "error")', []),
    ],
)
def test_an_error_type_is_found_wherever_the_code_writes_one(
    source: str, types: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = protocol.REPO / "activities" / "settling.py"
    monkeypatch.setattr(type(path), "read_text", lambda _: source)
    assert list(protocol.written_types(path)) == types
