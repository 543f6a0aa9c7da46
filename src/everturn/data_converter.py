"""The data converter that a setting names: how what people say is written in Temporal, encrypted for example."""

from __future__ import annotations

from functools import cache

from temporalio.converter import DataConverter

from everturn.checks import shown
from everturn.errors import BadInput
from everturn.modules import load_module, split_spec

VARIABLE = "EVERTURN_DATA_CONVERTER"


@cache
def load_data_converter(spec: str) -> DataConverter:
    """The DataConverter that MODULE:NAME names. Raises BadInput if there is none."""
    module_name, name = split_spec(spec)
    if not module_name or name is None:
        raise BadInput(
            f"{VARIABLE} is {shown(spec)}; it must have the form MODULE:NAME, such as encryption.py:converter"
        )
    try:
        found = getattr(load_module(module_name), name, None)
    except BadInput as error:
        raise BadInput(f"{VARIABLE} is {shown(spec)}: {error}") from error
    if not isinstance(found, DataConverter):
        what = f"{name!r} there is {type(found).__name__}" if found is not None else f"there is no {name!r}"
        raise BadInput(f"{VARIABLE} is {shown(spec)}, but {what}; give a temporalio.converter.DataConverter")
    return found
