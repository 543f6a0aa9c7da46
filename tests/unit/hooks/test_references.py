"""Author's objects by name."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Tool, tool
from everturn.hooks.references import UnresolvedReference, reference_to, resolve


@tool
def decorated(a: int) -> int:
    """A tool at the top level."""
    return a


def plain(a: int) -> int:
    """A function at the top level."""
    return a


renamed = tool(name="other")(plain)


class Home:
    """Tools may stand in classes."""

    @tool
    @staticmethod
    def inside(a: int) -> int:
        """Inside a class."""
        return a


@pytest.mark.parametrize("thing", [decorated, plain, renamed, Home, Home.inside])
def test_what_stands_in_a_module_is_found_by_its_name(thing: Any) -> None:
    assert resolve(reference_to(thing, "tool")) is thing


def test_what_stands_inside_a_function_has_no_name() -> None:
    def local(a: int) -> int:
        return a

    for thing in (local, tool(local), lambda: None, tool(name="decorated")(decorated.function)):
        with pytest.raises(UnresolvedReference, match="define it at the top level of a module"):
            reference_to(thing, "tool")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("no_such_module_at_all:x", "cannot be imported on this worker"),
        ("math:no_such_name", "module 'math' has no 'no_such_name'"),
        ("math", "module 'math' has no ''"),
        ("", "cannot be imported"),
    ],
)
def test_a_reference_that_leads_nowhere_says_what_to_do(reference: str, said: str) -> None:
    with pytest.raises(UnresolvedReference) as caught:
        resolve(reference)
    assert said in str(caught.value)
    assert "deploy" in str(caught.value)


def test_a_tool_stays_a_tool() -> None:
    assert isinstance(resolve(reference_to(decorated, "tool")), Tool)
