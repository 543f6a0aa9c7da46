"""What the SDK does to the payloads of every workflow task for the sake of codecs and external storage.

It walks over an activation and over its completion three times each, a seventh of the Python time of a worker, also
where the client has neither a codec nor a storage, so that each walk leaves everything as it is. (For activities the
SDK itself leaves such walks out.)
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from temporalio import converter
from temporalio.bridge import worker as bridge
from temporalio.converter import DataConverter

Walk = Callable[..., Awaitable[Any]]
WALKS: Final = ("decode_activation", "encode_completion")

logger = logging.getLogger("everturn.worker")


def skip_idle_walks() -> bool:
    """Makes this process leave out walks that change nothing; False if this version of the SDK is not as expected."""
    outcome = getattr(getattr(converter, "_extstore", None), "StorageOperationMetrics", None)
    found = {name: getattr(bridge, name, None) for name in WALKS}
    if outcome is None or not all(map(_is_expected, found.values())):
        logger.info("workflow tasks take a little longer: temporalio is of another version than expected")
        return False
    for name, walk in found.items():
        if walk is not None and not hasattr(walk, "__wrapped__"):
            setattr(bridge, name, _unless_idle(walk, outcome))
    return True


def _is_expected(walk: Any) -> bool:
    return inspect.iscoroutinefunction(walk) and list(inspect.signature(walk).parameters)[1:2] == ["data_converter"]


def _unless_idle(walk: Walk, outcome: Callable[[], Any]) -> Walk:
    @functools.wraps(walk)
    async def walk_unless_idle(message: Any, data_converter: DataConverter, *args: Any, **options: Any) -> Any:
        if data_converter.payload_codec is None and data_converter.external_storage is None:
            return outcome()
        return await walk(message, data_converter, *args, **options)

    return walk_unless_idle
