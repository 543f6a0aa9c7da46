"""How payloads become JSON and back: by pydantic, which reads a class's type hints once.

The SDK's own way resolves them anew for each value: up to a millisecond per payload, twice per activity.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import TypeAdapter
from temporalio.converter import TransferTypeConverter, transfer_type_convertible

T = TypeVar("T")


class _AsFields(TransferTypeConverter[Any, dict[str, Any]]):
    """A dataclass as a JSON object of its fields. Unknown fields are ignored: newer workers may send them."""

    def to_transfer_type(self, value: Any) -> dict[str, Any]:
        fields: dict[str, Any] = _ADAPTERS[type(value)].dump_python(value, warnings=False)
        return fields

    def from_transfer_type(self, value: dict[str, Any], type_hint: type[Any]) -> Any:
        return _ADAPTERS[type_hint].validate_python(value)


def crossing(cls: type[T]) -> type[T]:
    """Marks a dataclass that crosses to or from Temporal. Whatever data converter is in use stays in use."""
    return transfer_type_convertible(_AsFields)(cls)


class _Adapters(dict[object, TypeAdapter[Any]]):
    """Built when first needed: by then all types that a class names exist."""

    def __missing__(self, cls: type[Any]) -> TypeAdapter[Any]:
        adapter = self[cls] = TypeAdapter(cls)
        return adapter


_ADAPTERS: Final = _Adapters()
