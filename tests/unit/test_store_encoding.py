"""Values on their way into the database."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.errors import BadInput
from everturn.store.encoding import clean_text, dump, encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
    max_leaves=20,
)


@given(JSON)
def test_every_json_value_becomes_text_that_databases_take(value: object) -> None:
    text = dump(value)
    text.encode()
    assert "\x00" not in text
    assert "\x00" not in json.dumps(json.loads(text), ensure_ascii=False).replace("\\u0000", "\x00").replace(
        "\\\x00", ""
    )


def test_ordinary_values_are_kept_compact_and_readable() -> None:
    assert dump({"a": ["é", 1.5, None, True]}) == '{"a":["é",1.5,null,true]}'


def test_refused_characters_and_numbers_are_replaced() -> None:
    assert json.loads(dump({"k\x00": ["\ud800x", "a\x00", math.nan, math.inf]})) == {
        "k\ufffd": ["\ufffdx", "a\ufffd", None, None]
    }


def test_a_literal_backslash_u0000_is_no_nul() -> None:
    assert json.loads(dump("\\u0000")) == "\\u0000"


def test_halves_of_a_surrogate_pair_are_joined() -> None:
    assert clean_text("\ud83d\ude00") == "😀"


def test_encoded_text_is_not_encoded_again() -> None:
    assert dump(encode({"a": 1})) == '{"a":1}'


@pytest.mark.parametrize("value", [object(), {"x": datetime(2026, 1, 1, tzinfo=UTC)}, b"x", {1, 2}])
def test_values_without_a_json_form_are_refused(value: object) -> None:
    with pytest.raises(BadInput, match="no JSON form"):
        dump(value)


def test_a_circle_is_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(BadInput, match="no JSON form"):
        dump(circle)
