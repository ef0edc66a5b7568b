"""The few words of JSON Schema that operations are described with. A schema with a ``title`` becomes a component."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from troyproxy.settings.shapes import Shape

Schema = Mapping[str, object]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
ANY: Final[Schema] = {}
NOTHING: Final[Schema] = {"type": "null"}
MOMENT: Final[Schema] = {"type": "number", "description": "Unix seconds."}


def nullable(schema: Schema) -> dict[str, object]:
    """Return the schema of *schema* or null."""
    return {"anyOf": [schema, NOTHING]}


def listing(item: Schema) -> dict[str, object]:
    """Return the schema of a list."""
    return {"type": "array", "items": item}


def one_of(*values: str) -> dict[str, object]:
    """Return the schema of one of these texts."""
    return {"type": "string", "enum": list(values)}


def mapping(value: Schema) -> dict[str, object]:
    """Return the schema of an object with free keys."""
    return {"type": "object", "additionalProperties": value}


def exactly(**properties: Schema) -> dict[str, object]:
    """Return the schema of an object that has all of these members and no other."""
    return some(properties, required=properties)


def some(properties: Mapping[str, Schema], required: Collection[str] = ()) -> dict[str, object]:
    """Return the schema of an object that has no other members than these."""
    schema: dict[str, object] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def titled(title: str, schema: Schema) -> dict[str, object]:
    """Return *schema* as a component named *title*: a single CamelCase word."""
    return {"title": title, **schema}


def with_warnings(schema: Schema) -> dict[str, object]:
    """Return the schema of an object of *schema* (made by `exactly`) that carries ``warnings``, too."""
    return exactly(**properties_of(schema), warnings=listing(TEXT))


def properties_of(schema: Schema) -> Mapping[str, Schema]:
    """Return the members of an object of *schema*. Raises TypeError where it describes no object."""
    properties = schema["properties"]
    if not isinstance(properties, Mapping):
        raise TypeError("the schema has no properties")
    return properties


def body_of(shape: Shape[object], *, ignored: Collection[str] = (), partial: bool = False) -> dict[str, object]:
    """Return the schema of a request body that *shape* reads, where null is the same as not given.

    *ignored* members of an answer may be sent back and count for nothing; *partial*: nothing is required.
    """
    schema = _lenient(shape.schema)
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise TypeError("the shape is no record")
    back = {name: {"description": "Part of an answer; ignored in a request."} for name in ignored}
    kept = {key: value for key, value in schema.items() if not (partial and key == "required")}
    if partial:
        properties = {name: _or_null(inner) for name, inner in properties.items()}
    return {**kept, "properties": {**back, **properties}}


def _lenient(schema: Schema) -> dict[str, object]:
    """Return *schema* with null allowed for every member that is not required: records skip it."""
    found = {key: _deeper(value) for key, value in schema.items()}
    properties, required = found.get("properties"), found.get("required", [])
    if isinstance(properties, dict) and isinstance(required, list):
        found["properties"] = {k: v if k in required else _or_null(v) for k, v in properties.items()}
    return found


def _deeper(value: object) -> object:
    if isinstance(value, Mapping):
        return _lenient(value)
    return [_deeper(each) for each in value] if isinstance(value, list | tuple) else value


def _or_null(schema: object) -> object:
    if not isinstance(schema, Mapping) or not schema or NOTHING in schema.get("anyOf", ()):
        return schema
    return {"anyOf": [schema, NOTHING]}
