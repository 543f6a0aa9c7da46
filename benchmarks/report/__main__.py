"""The page and the chart of a run, from its JSON file.

python -m benchmarks.report [FILE]          writes FILE's .md and .png; default: the newest of benchmarks/results
python -m benchmarks.report --docs [FILE]   puts the same tables into docs/performance.md
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

from benchmarks.programs import ROOT
from benchmarks.report.page import everything
from benchmarks.report.results import Results, newest
from benchmarks.report.writing import write

DOCS: Final = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def into_docs(results: Results) -> None:
    """Replaces what stands between the two marks."""
    section = "\n".join([BEGIN, "", *everything(results), END])
    text = re.sub(f"{BEGIN}.*{END}", lambda _: section, DOCS.read_text(), flags=re.DOTALL)
    DOCS.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    path = given.file or newest()
    if given.docs:
        into_docs(Results.load(path))
    else:
        write(path)


if __name__ == "__main__":
    main()
