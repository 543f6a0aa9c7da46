"""What callers send that nobody should send."""

from __future__ import annotations

import math
from collections import UserString
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy


class Unprintable:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no words for this")


def nested(depth: int, value: object = 1) -> Any:
    """Lists in lists."""
    for _ in range(depth):
        value = [value]
    return value


def nested_objects(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"k": value}
    return value


def circle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = [value]
    return value


NO_STRINGS: Final[tuple[Any, ...]] = (
    0,
    7,
    -1,
    1.5,
    True,
    b"bytes",
    [],
    ["a"],
    {},
    {"a": 1},
    (),
    object(),
    Unprintable(),
)
"""Values of other types where a string is wanted."""

BAD_IDS: Final[tuple[Any, ...]] = (
    "",
    " ",
    "   ",
    "\t",
    "\n",
    " lead",
    "trail ",
    "line\nbreak",
    "car\rriage",
    "nul\x00",
    "\x00",
    "bell\x07",
    "esc\x1b[31mred",
    "del\x7f",
    "\ud800",
    "half\udfff",
    "\u202eright-to-left",
    "zero\u200bwidth",
    "join\u200der",
    "\ufeffbom",
    "line\u2028separator",
    "no\u00a0break",
    "soft\u00adhyphen",
    "\ue000private",
    "\uffff",
    "x" * 201,
    "x" * 100_000,
    "é" * 201,
    UserString("user string"),
    nested(10_000),
    *NO_STRINGS,
)
ODD_IDS: Final = (
    "a",
    "x" * 200,
    "../../etc/passwd",
    "..",
    "/",
    "\\",
    "C:\\x",
    "a/b?c=d#e",
    "%00%2e%2e",
    "a b",
    "'; DROP TABLE turns; --",
    '"quoted"',
    "{braces}",
    "{0}",
    "%s%n",
    "$HOME",
    "`id`",
    "<script>alert(1)</script>",
    "😀",
    "🏳" * 50,
    "日本語",
    "é",
    "e\u0301",
    "עברית",
    "true",
    "null",
    "NaN",
    "0",
    "-1",
    "a:b",
    "a|b",
    "*",
    "\u1e9e",
)
"""Strange, but ids all the same: they have to work."""

NO_JSON: Final[tuple[Any, ...]] = (
    math.nan,
    math.inf,
    -math.inf,
    10**5000,
    b"bytes",
    bytearray(b"x"),
    object(),
    Unprintable(),
    {1, 2},
    frozenset((1,)),
    1j,
    Decimal("1.5"),
    datetime.now(UTC),
    range(3),
    (item for item in ()),
    len,
    int,
    Ellipsis,
    "\ud800",
    "half \udc00 pair",
    "nul \x00 inside",
    "\x00",
    nested(101),
    nested(900),
    nested(10_000),
    nested_objects(120),
    nested_objects(5_000),
    circle(),
    {"\x00": 1},
    {"\ud800": 1},
    {(1, 2): 3},
    {b"k": 1},
    {object(): 1},
    [math.nan],
    {"deep": {"er": [1, {"x": math.inf}]}},
    ValueError("an exception"),
    UserString("user string"),
)
"""Values without a JSON form, or with one that no database takes."""

ODD_JSON: Final[tuple[Any, ...]] = (
    None,
    0,
    -0.0,
    1e308,
    5e-324,
    10**30,
    -(10**300),
    2**63,
    True,
    "",
    [],
    {},
    nested(90),
    nested_objects(90),
    "\u2028\u2029",
    "\uffff\ufffe",
    "\x1b[2J",
    "😀" * 1000,
    r"\u0000",
    r"\\u0000",
    "\\" * 5000,
    {"": ""},
    {"__proto__": {"x": 1}},
    {"key with spaces": [None, True, 1.5]},
    {"type": "text", "text": 5},
    [[], {}, [[]]],
    "{" * 500,
    "]" * 500,
)
"""JSON that is unusual and has to arrive unchanged."""

NO_SECONDS: Final[tuple[Any, ...]] = ("1", "", b"1", [], {}, object(), math.nan, -math.inf, 1j, 10**400, Unprintable())
"""Where a number of seconds is wanted."""
NO_COUNTS: Final[tuple[Any, ...]] = (
    "1",
    "",
    1.5,
    math.nan,
    -1,
    -(10**30),
    2**63,
    10**400,
    [],
    {},
    object(),
    None,
    b"1",
)
"""Where 0 or a whole number is wanted."""


def collected(strategy: SearchStrategy[Any], count: int) -> list[Any]:
    """So many inputs of a strategy, the same ones in every run."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found[:count]


any_text = st.text(st.characters(), max_size=40)
"""Also control characters and halves of surrogate pairs."""
any_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), any_text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(any_text, inner, max_size=4)),
    max_leaves=8,
)
"""Also NaN and infinities."""
any_value = st.one_of(
    any_json,
    st.binary(max_size=10),
    st.sets(st.integers(), max_size=2),
    st.tuples(st.integers(), any_text),
    st.dictionaries(st.one_of(st.integers(), st.none(), st.booleans(), st.floats(), any_text), any_json, max_size=3),
)
"""Also what Python has and JSON has not."""
