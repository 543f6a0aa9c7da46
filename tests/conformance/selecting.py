"""A pytest plugin of `python -m tests.conformance`: runs only the tests of the checklist, and writes down how they
went."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conformance.checklist import entries, fits

REPORT = "CONFORMANCE_REPORT"
"""Environment variable with the path of the report: outcomes by the names of tests."""
_outcomes = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_outcomes] = {}
    config.pluginmanager.register(_Recorder(config.stash[_outcomes]), "conformance-recorder")


class _Recorder:
    def __init__(self, outcomes: dict[str, str]) -> None:
        self._outcomes = outcomes

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test passed if all its phases did."""
        worst = self._outcomes.get(report.nodeid, "passed")
        self._outcomes[report.nodeid] = report.outcome if worst == "passed" else worst


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = [test for entry in entries() for test in entry.tests]
    chosen = [item for item in items if any(fits(item.nodeid, test) for test in wanted)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    Path(os.environ[REPORT]).write_text(json.dumps(session.config.stash[_outcomes]))
