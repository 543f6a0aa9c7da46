"""The user's messages as an agent's transforms want them stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

from everturn.errors import BadInput
from everturn.hooks.registry import RegisteredAgent
from everturn.hooks.transforms import MessageTransform
from everturn.messages import Part

_UNTOUCHED: Final = frozenset({"type", "id", "url", "mediaType", "sourceId"})
"""Fields of a part that are no words of the user's."""


def rewriting(agent: RegisteredAgent | None) -> Callable[[list[Part]], list[Part]] | None:
    """What is to be done with a message before it is stored, None for nothing. It raises BadInput if it cannot be."""
    found: list[MessageTransform] = []
    for transform in agent.transforms.values() if agent else ():
        candidate: object = transform
        if isinstance(candidate, MessageTransform):
            found.append(candidate)
    return partial(_rewritten, found) if found else None


def _rewritten(transforms: Sequence[MessageTransform], parts: list[Part]) -> list[Part]:
    try:
        return [
            {name: value if name in _UNTOUCHED else _deep(transforms, value) for name, value in part.items()}
            for part in parts
        ]
    except Exception as error:  # an unchecked message must not be stored, whatever the author's code does
        raise BadInput(f"the message could not be checked by a transform: {type(error).__name__}") from error


def _deep(transforms: Sequence[MessageTransform], value: Any) -> Any:
    """A value with every string in it rewritten."""
    if isinstance(value, str):
        for transform in transforms:
            value = transform.user_text(value)
        return value
    if isinstance(value, list):
        return [_deep(transforms, item) for item in cast(list[object], value)]
    if isinstance(value, dict):
        return {name: _deep(transforms, item) for name, item in cast(dict[str, Any], value).items()}
    return value
