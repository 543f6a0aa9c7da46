"""How many malformed inputs the tests of this folder try."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from everturn import ChatClient
from everturn.hooks.points import HOOK_POINTS
from tests.malformed.client_cases import client_cases
from tests.malformed.hook_answers import WRONG
from tests.malformed.test_commands import bad_usage
from tests.malformed.test_hooks import ANSWERS
from tests.malformed.test_requests import BY_CHANCE, TEXTS
from tests.malformed.test_streams import ANSWERS as STREAMS
from tests.malformed.test_tools import PLAN
from tests.malformed.values import ODD_IDS, ODD_JSON


def test_thousands_of_malformed_inputs_are_tried(tmp_path: Path) -> None:
    counts = {
        "arguments of the client": len(client_cases(cast(Any, ChatClient), "known")),
        "requests": len(ODD_IDS) + len(ODD_JSON) + len(TEXTS) + 3 * BY_CHANCE,
        "answers of hooks": len(ANSWERS) + len(WRONG) * len(HOOK_POINTS),
        "results of tools": len(PLAN),
        "answers of model servers": len(STREAMS),
        "command lines": len(bad_usage(tmp_path)),
    }
    assert all(count >= 100 for count in counts.values()), counts
    assert sum(counts.values()) >= 3_000, counts
