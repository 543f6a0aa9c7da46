"""The checklist of the specification names tests that exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from everturn.hooks.decisions import StepConfig, TurnConfig
from everturn.hooks.points import HOOK_POINTS
from tests.conformance.__main__ import verdict
from tests.conformance.checklist import Entry, entries, fits

ROOT = Path(__file__).parents[2]


@cache
def functions(file: str) -> frozenset[str]:
    path = ROOT / file
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_test_of_the_checklist_exists() -> None:
    gone = [
        test
        for entry in entries()
        for test in entry.tests
        if test.partition("::")[2].partition("[")[0] not in functions(test.partition("::")[0])
    ]
    assert gone == []


def test_every_hook_point_and_every_field_of_a_config_is_on_the_list() -> None:
    names: dict[str, set[str]] = {}
    for entry in entries():
        names.setdefault(entry.section, set()).update(entry.name.replace(":", ",").split(", "))
    assert names["1 hook points"] == {"configure_session", *HOOK_POINTS}
    assert names["2 TurnConfig"] >= set(TurnConfig.model_fields)
    assert names["3 StepConfig"] >= set(StepConfig.model_fields)


def test_a_test_is_found_by_its_name_or_by_one_of_its_cases() -> None:
    assert fits("a.py::test_x[one-two]", "a.py::test_x")
    assert fits("a.py::test_x[one-two]", "a.py::test_x[one-*]")
    assert not fits("a.py::test_x[one-two]", "a.py::test_x[one]")
    assert not fits("a.py::test_xy", "a.py::test_x")


def test_a_name_passes_only_if_all_its_tests_ran_and_passed() -> None:
    entry = Entry("s", "n", ("a.py::test_x", "a.py::test_y"))
    assert verdict(entry, {"a.py::test_x[1]": "passed", "a.py::test_y": "passed"}) == "pass"
    assert verdict(entry, {"a.py::test_x[1]": "passed", "a.py::test_y": "failed"}) == "fail"
    assert verdict(entry, {"a.py::test_y": "passed", "a.py::test_x": "skipped"}) == "fail"
    assert verdict(entry, {"a.py::test_x[1]": "passed"}) == "missing"
    assert verdict(Entry("s", "n", ()), {}) == "missing"
