"""Does a value meet a JSON Schema? The part of it that tools use: types, values, properties, items, bounds, unions.

What is not known here (``pattern``, ``format``, ``if``, …) is not checked. No library is needed for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.leaks.schema_types import Schema, type_of

_STEPS: Final = 10_000  # a schema that needs more looks is not met


def meets(value: object, document: Mapping[str, object]) -> bool:
    """Whether *value* meets the schema *document*. Takes a bounded number of steps."""
    return _Check().value(value, Schema.of(document).at(document))


class _Check:
    def __init__(self) -> None:
        self._left = _STEPS

    def value(self, value: object, schema: Schema) -> bool:
        """Whether *value* meets *schema*, its parts and its unions."""
        self._left -= 1
        if self._left < 0:
            return False
        return (
            _fits_type(value, schema)
            and _fits_values(value, schema.node)
            and _fits_bounds(value, schema.node)
            and self._inside(value, schema)
            and all(self.value(value, member) for member in schema.members("allOf"))
            and self._unions(value, schema)
        )

    def _unions(self, value: object, schema: Schema) -> bool:
        for keyword, most in (("anyOf", None), ("oneOf", 1)):
            members = list(schema.members(keyword))
            met = sum(self.value(value, member) for member in members)
            if members and (not met or (most is not None and met > most)):
                return False
        return True

    def _inside(self, value: object, schema: Schema) -> bool:
        if isinstance(value, dict):
            return self._object(value, schema)
        if isinstance(value, list) and isinstance(schema.node.get("items"), Mapping):
            return all(self.value(item, schema.items()) for item in value)
        return True

    def _object(self, value: Mapping[str, object], schema: Schema) -> bool:
        properties = schema.node.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        rest = schema.node.get("additionalProperties", True)
        for key, item in value.items():
            if key in known:
                fits = self.value(item, schema.at(known[key]))
            else:
                fits = rest is not False and self.value(item, schema.at(rest))
            if not fits:
                return False
        return schema.own_required() <= value.keys()


def _fits_type(value: object, schema: Schema) -> bool:
    types = schema.named_types()
    if types is None:
        return True
    whole = isinstance(value, float) and value.is_integer() and "integer" in types
    return whole or type_of(value) in types


def _fits_values(value: object, node: Mapping[str, object]) -> bool:
    if "const" in node and not _same(value, node["const"]):
        return False
    listed = node.get("enum")
    return not isinstance(listed, list) or any(_same(value, item) for item in listed)


def _same(one: object, other: object) -> bool:
    """Equality of JSON: 1 is 1.0, but true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _fits_bounds(value: object, node: Mapping[str, object]) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, (int, float)):
        return _within(value, node, "minimum", "maximum") and _beyond(value, node)
    if isinstance(value, str):
        return _within(len(value), node, "minLength", "maxLength")
    if isinstance(value, list):
        return _within(len(value), node, "minItems", "maxItems")
    return True


def _within(size: float, node: Mapping[str, object], least: str, most: str) -> bool:
    low, high = _bound(node, least), _bound(node, most)
    return (low is None or size >= low) and (high is None or size <= high)


def _beyond(size: float, node: Mapping[str, object]) -> bool:
    low, high = _bound(node, "exclusiveMinimum"), _bound(node, "exclusiveMaximum")
    return (low is None or size > low) and (high is None or size < high)


def _bound(node: Mapping[str, object], keyword: str) -> float | None:
    bound = node.get(keyword)
    return bound if isinstance(bound, (int, float)) and not isinstance(bound, bool) else None
