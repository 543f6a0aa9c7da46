"""Values that fit a JSON schema, filled with what the user's text states."""

from __future__ import annotations

import re
from typing import Any, cast

from everturn.activities.scripted.facts import Facts
from everturn.turns import JsonDict

_MAX_DEPTH = 8  # a schema that refers to itself would never end
_PLACE_HINTS = ("city", "place", "location", "town", "country", "name", "person", "destination", "origin", "where")
_FREE_HINTS = ("query", "text", "message", "question", "prompt", "content", "body", "expression", "sentence", "search")


def sample_input(schema: JsonDict, text: str) -> JsonDict:
    """Arguments for a tool with this schema: `{"city": "Paris"}` from "Weather in Paris?"."""
    value = sample_value(schema or {"type": "object"}, text, schema)
    return cast(JsonDict, value) if isinstance(value, dict) else {}


def sample_value(schema: JsonDict, text: str, root: JsonDict) -> Any:
    """Any value that fits `schema`; references are looked up in `root`."""
    return _Sampler(Facts(text), root).value(schema, "", 0)


class _Sampler:
    """Gives each fact to one field only, so that two numbers of a text fill two fields."""

    def __init__(self, facts: Facts, root: JsonDict) -> None:
        self._facts, self._root = facts, root
        self._used: set[object] = set()

    def value(self, schema: JsonDict, name: str, depth: int) -> Any:
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._choice(schema)
        kind = _kind(schema)
        if depth > _MAX_DEPTH or kind == "null":
            return None
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        return self._scalar(schema, kind, name)

    def _resolved(self, schema: JsonDict) -> JsonDict:
        """Follows `$ref`, and takes the first choice of a union that is not null."""
        for _ in range(_MAX_DEPTH):
            reference = schema.get("$ref")
            options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if isinstance(reference, str):
                schema = self._lookup(reference)
            elif isinstance(options, list) and options:
                choices = [cast(JsonDict, o) for o in cast(list[object], options) if isinstance(o, dict)]
                schema = next((c for c in choices if c.get("type") != "null"), choices[0] if choices else {})
            else:
                break
        return schema

    def _lookup(self, reference: str) -> JsonDict:
        found: Any = self._root
        for key in reference.removeprefix("#/").split("/"):
            found = cast(JsonDict, found).get(key) if isinstance(found, dict) else None
        return cast(JsonDict, found) if isinstance(found, dict) else {}

    def _choice(self, schema: JsonDict) -> Any:
        options = cast(list[object], schema["enum"])
        said = next((o for o in options if isinstance(o, str) and self._facts.mentions(o)), None)
        return said if said is not None else schema.get("default", options[0])

    def _object(self, schema: JsonDict, depth: int) -> JsonDict:
        properties = cast(dict[str, JsonDict], schema.get("properties") or {})
        required = cast(list[str], schema.get("required") or [])
        made: JsonDict = {}
        for name, inner in properties.items():
            if name in required or self._stated(self._resolved(inner)):
                made[name] = self.value(inner, name, depth + 1)
        return made

    def _stated(self, schema: JsonDict) -> bool:
        """Whether the text names one of an optional field's choices."""
        options = cast(list[object], schema.get("enum") or [])
        return any(isinstance(o, str) and self._facts.mentions(o) for o in options)

    def _array(self, schema: JsonDict, name: str, depth: int) -> list[Any]:
        inner = schema.get("items") or {"type": "string"}
        count = max(1, int(schema.get("minItems", 1)))
        return [self.value(inner, name, depth + 1) for _ in range(count)]

    def _scalar(self, schema: JsonDict, kind: str, name: str) -> Any:
        if kind == "boolean":
            return bool(schema.get("default", True))
        if kind in ("integer", "number"):
            return self._number(schema, kind)
        found = self._string(schema, name)
        if found is None:
            found = schema.get("default") or self._facts.text.strip() or "example"
        return _fitted(str(found), schema)

    def _number(self, schema: JsonDict, kind: str) -> float | int:
        stated = self._take(self._facts.numbers)
        value = float(cast(float, stated if stated is not None else schema.get("default", schema.get("minimum", 1))))
        low, high = schema.get("minimum"), schema.get("maximum")
        value = value if low is None else max(value, float(low))
        value = value if high is None else min(value, float(high))
        return int(value) if kind == "integer" or value.is_integer() else value

    def _string(self, schema: JsonDict, name: str) -> object | None:
        form, lower = schema.get("format"), name.lower()
        if form in ("date", "date-time"):
            day = self._take(self._facts.dates) or "2026-01-01"
            return day if form == "date" else f"{day}T00:00:00Z"
        if form == "email" or "email" in lower:
            return self._take(self._facts.emails) or "someone@example.com"
        if form in ("uri", "url") or "url" in lower:
            return self._take(self._facts.urls) or "https://example.com/"
        return self._words(lower)

    def _words(self, name: str) -> object | None:
        facts = self._facts
        by_hint: tuple[list[str], ...] = (facts.quoted, facts.names, facts.ids)
        if any(hint in name for hint in _FREE_HINTS):
            by_hint = (facts.quoted,)
        elif re.search(r"(^|_)(id|number|code|key|sku)$", name):
            by_hint = facts.quoted, facts.ids, [f"{n:g}" for n in facts.numbers], facts.names
        elif any(hint in name for hint in _PLACE_HINTS):
            by_hint = facts.names, facts.quoted
        return next((found for values in by_hint if (found := self._take(values)) is not None), None)

    def _take(self, values: list[Any]) -> object | None:
        """The first value that no field has taken; if all are taken, the first."""
        fresh = [v for v in values if v not in self._used]
        found = fresh[0] if fresh else values[0] if values else None
        if found is not None:
            self._used.add(found)
        return found


def _kind(schema: JsonDict) -> str:
    kind: object = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((k for k in cast(list[object], kind) if k != "null"), "null")
    return str(kind)


def _fitted(text: str, schema: JsonDict) -> str:
    text = text[: int(schema["maxLength"])] if "maxLength" in schema else text
    return text.ljust(int(schema.get("minLength", 0)), "x")
