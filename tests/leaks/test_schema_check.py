from __future__ import annotations

from typing import Any

import pytest

from troyproxy.leaks.schema_check import meets

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        *(
            (3, INTEGER),
            (3.0, INTEGER),
            (3, {"type": "number"}),
            ("x", STRING),
            (None, {"type": ["string", "null"]}),
            ([1], {"type": "array"}),
        ),
        *(
            (1, {"const": 1.0}),
            ("a", {"enum": ["a", 1]}),
            (5, {"minimum": 5, "maximum": 5}),
            (5, {"exclusiveMinimum": 4, "exclusiveMaximum": 6}),
        ),
        *(
            ("ab", {"minLength": 2, "maxLength": 2}),
            ([1, 2], {"minItems": 2, "maxItems": 2, "items": INTEGER}),
            (True, {"minimum": 5}),
        ),
        *(
            ({"a": 1}, {"properties": {"a": INTEGER}, "required": ["a"]}),
            ({"a": 1}, {"required": "odd"}),
            ({"b": 2}, {"additionalProperties": INTEGER}),
        ),
        *(
            (1, {"anyOf": [STRING, INTEGER]}),
            (1, {"oneOf": [STRING, INTEGER]}),
            (1, {"allOf": [INTEGER, {"minimum": 1}]}),
            ("x", {"pattern": "("}),
        ),
        *(
            (1, {"$ref": "#/$defs/n", "$defs": {"n": INTEGER}}),
            (1, {}),
            (None, {"enum": [None]}),
            (5, {"minimum": True}),
            ([1, "a"], {"items": True}),
        ),
    ],
)
def test_a_value_that_fits_meets_the_schema(value: object, schema: dict[str, Any]) -> None:
    assert meets(value, schema)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        *(
            ("3", INTEGER),
            (3.5, INTEGER),
            (True, INTEGER),
            (True, {"type": "number"}),
            (3, STRING),
            (None, STRING),
            ({}, {"type": "array"}),
        ),
        *(
            (True, {"const": 1}),
            ("b", {"enum": ["a"]}),
            (4, {"minimum": 5}),
            (6, {"maximum": 5}),
            (4, {"exclusiveMinimum": 4}),
            (6, {"exclusiveMaximum": 6}),
        ),
        *(
            ("a", {"minLength": 2}),
            ("abc", {"maxLength": 2}),
            ([], {"minItems": 1}),
            ([1], {"maxItems": 0}),
            (["a"], {"items": INTEGER}),
        ),
        *(
            ({}, {"required": ["a"]}),
            ({"a": "x"}, {"properties": {"a": INTEGER}}),
            ({"b": 1}, {"additionalProperties": False}),
        ),
        *(
            ({"b": "x"}, {"additionalProperties": INTEGER}),
            (1, {"anyOf": [STRING]}),
            (1, {"oneOf": [INTEGER, INTEGER]}),
            (1, {"allOf": [INTEGER, STRING]}),
        ),
        *(("x", {"$ref": "#/$defs/n", "$defs": {"n": INTEGER}}), (None, {"enum": []})),
    ],
)
def test_a_value_that_does_not_fit_does_not(value: object, schema: dict[str, Any]) -> None:
    assert not meets(value, schema)


def test_a_schema_that_needs_too_many_looks_is_not_met() -> None:
    defs = {f"n{at}": {"allOf": [{"$ref": f"#/$defs/n{at + 1}"}] * 20} for at in range(6)}
    assert not meets(1, {"$ref": "#/$defs/n0", "$defs": defs})
