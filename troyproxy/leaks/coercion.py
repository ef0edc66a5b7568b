"""Arguments read as their schema says. Untyped formats carry text only; typed ones are corrected, never guessed at.

Rules, first match wins (T = the types the schema allows):

    null in T, text is exactly ``null``            null
    boolean in T, text is true/false, any case     boolean (``1``, ``yes``, ``on`` stay text)
    integer or number in T, a JSON number          number (``0042`` stays text; ``3.0`` is 3 where only integers fit)
    array or object in T, text begins with [ or {  JSON, else a Python literal, of a type in T
    otherwise                                      the text: if T wants no text, validation says so
    T unknown                                      the text, but JSON that begins with [ or { is taken as JSON
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

from troyproxy.leaks.grammars.json_text import json_value_in
from troyproxy.leaks.grammars.python_text import python_value
from troyproxy.leaks.schema_types import Schema, Types, type_of

_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,300})")
_NUMBER: Final = re.compile(
    r"(?P<whole>-?(?:0|[1-9][0-9]{0,300}))(?:\.(?P<part>[0-9]{1,300}))?(?:[eE][+-]?[0-9]{1,3})?"
)
_BOOLEANS: Final = {"true": True, "false": False}


def coerced(arguments: Mapping[str, object], schema: Mapping[str, object], *, typed: bool) -> dict[str, object]:
    """Return *arguments* with values of the types that *schema* (a tool's parameters) allows, where that is no guess.

    *typed*: the format wrote numbers, booleans and null as such.
    """
    return _object(arguments, Schema.of(schema), typed=typed)


def _object(values: Mapping[str, object], schema: Schema, *, typed: bool) -> dict[str, object]:
    return {key: _value(value, schema.property(key), typed=typed) for key, value in values.items()}


def _value(value: object, declared: Schema | None, *, typed: bool) -> object:
    schema = declared or Schema()
    types = schema.types()
    if isinstance(value, str):
        value = _corrected(value, types) if typed else _read(value, types)
        typed = True  # what was read out of text as JSON wrote its types
    if isinstance(value, dict):
        return _object(value, schema, typed=typed)
    if isinstance(value, list):
        return [_value(item, schema.items(), typed=typed) for item in value]
    return _as_text(value, types)


def _read(text: str, types: Types | None) -> object:
    """Read raw text; blanks matter only to text."""
    bare = text.strip()
    if types is None:
        return _nested(bare, frozenset({"array", "object"}), text, python=False)
    if bare == "null" and "null" in types:
        return None
    if "boolean" in types and bare.lower() in _BOOLEANS:
        return _BOOLEANS[bare.lower()]
    number = _number(bare, types)
    return _nested(bare, types, text, python=True) if number is None else number


def _corrected(text: str, types: Types | None) -> object:
    """Correct typed text where the schema allows none."""
    if types is None or "string" in types:
        return text
    number = _number(text.strip(), types)
    return _nested(text.strip(), types, text, python=False) if number is None else number


def _number(bare: str, types: Types) -> int | float | None:
    if not types & {"integer", "number"}:
        return None
    if _INTEGER.fullmatch(bare):
        return int(bare)
    found = _NUMBER.fullmatch(bare)
    if found is None:
        return None
    if "number" in types:
        number = float(bare)
        return number if math.isfinite(number) else None
    whole = found["part"] is not None and not found["part"].strip("0") and bare == f"{found['whole']}.{found['part']}"
    return int(found["whole"]) if whole else None


def _nested(bare: str, types: Types, text: str, *, python: bool) -> object:
    """Read an array or object of an allowed type; what cannot be read stays the *text*."""
    wanted = types & {"array", "object"}
    if not wanted or not bare.startswith(("[", "{")):
        return text
    value = json_value_in(bare)
    if value is None and python:
        try:
            value = python_value(bare)
        except ValueError:
            return text
    return value if type_of(value) in wanted else text


def _as_text(value: object, types: Types | None) -> object:
    """A number becomes text where the schema allows only text."""
    only_text = types is not None and types - {"null"} == {"string"}
    return json.dumps(value) if only_text and type_of(value) in {"integer", "number"} else value
