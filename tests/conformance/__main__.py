"""Prints every name of the specification with pass, fail or missing: `make conformance`.

Runs the tests of the checklist once. Ends with 1 if a name fails or has no test that ran.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.checklist import Entry, entries, fits
from tests.conformance.selecting import REPORT

LIMIT = 1800.0


def verdict(entry: Entry, outcomes: Mapping[str, str]) -> str:
    """missing: no test is named, or one that is named did not run."""
    found = [[outcome for node, outcome in outcomes.items() if fits(node, test)] for test in entry.tests]
    if not found or not all(found):
        return "missing"
    return "pass" if all(outcome == "passed" for cases in found for outcome in cases) else "fail"


def run_tests() -> dict[str, str]:
    """Outcomes by the names of tests; what goes wrong is shown on standard error as pytest tells it."""
    files = sorted({test.partition("::")[0] for entry in entries() for test in entry.tests})
    present = [file for file in files if Path(file).is_file()]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conformance.selecting", "--show-capture=no"]
        done = subprocess.run(
            [*command, *present],
            env={**os.environ, REPORT: str(report)},
            stdout=subprocess.PIPE,
            text=True,
            timeout=LIMIT,
            check=False,  # failed tests are told name by name
        )
        if done.returncode != 0:
            sys.stderr.write(done.stdout)
        outcomes: dict[str, str] = json.loads(report.read_text()) if report.is_file() else {}
        return outcomes


def main() -> int:
    outcomes = run_tests()
    count: Counter[str] = Counter()
    section = ""
    for entry in entries():
        if entry.section != section:
            section = entry.section
            print(f"\n{section}")
        found = verdict(entry, outcomes)
        count[found] += 1
        print(f"  {found:8} {entry.name}")
    print(f"\n{sum(count.values())} names: {count['pass']} pass, {count['fail']} fail, {count['missing']} missing")
    return 0 if count["pass"] == sum(count.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
