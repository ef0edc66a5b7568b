from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.leaks.coercion import coerced


def untyped(text: object, schema: object) -> object:
    """Coerce one raw value."""
    return coerced({"k": text}, {"type": "object", "properties": {"k": schema}}, typed=False)["k"]


def typed(value: object, schema: object) -> object:
    """Correct one value of a format that has types."""
    return coerced({"k": value}, {"type": "object", "properties": {"k": schema}}, typed=True)["k"]


def is_same(value: object, other: object) -> bool:
    """Whether two values are equal and written alike: 1 is not 1.0, nor true."""
    return json.dumps(value) == json.dumps(other)


STRING, INTEGER, NUMBER, BOOLEAN, ARRAY, OBJECT, NULL = (
    {"type": name} for name in ("string", "integer", "number", "boolean", "array", "object", "null")
)
NULLABLE: dict[str, Any] = {"anyOf": [STRING, NULL]}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        *(
            ("null", NULLABLE, None),
            (" null\n", NULLABLE, None),
            ("none", NULLABLE, "none"),
            ("x", NULLABLE, "x"),
            ("null", STRING, "null"),
        ),
        *(
            ("", NULLABLE, ""),
            ("Null", NULL, "Null"),
            ("null", {"type": ["integer", "null"]}, None),
            ("null", OBJECT, "null"),
        ),
        *(("true", BOOLEAN, True), ("True", BOOLEAN, True), ("FALSE", BOOLEAN, False), (" true ", BOOLEAN, True)),
        *(
            ("1", BOOLEAN, "1"),
            ("yes", BOOLEAN, "yes"),
            ("on", BOOLEAN, "on"),
            ("0", BOOLEAN, "0"),
            ("tru", BOOLEAN, "tru"),
        ),
        *(("true", STRING, "true"), ("true", {"type": ["string", "boolean"]}, True)),
        *(
            ("8", INTEGER, 8),
            ("-8", INTEGER, -8),
            (" 8\n", INTEGER, 8),
            ("0", INTEGER, 0),
            ("0042", INTEGER, "0042"),
            ("+8", INTEGER, "+8"),
        ),
        *(
            ("3.0", INTEGER, 3),
            ("-3.00", INTEGER, -3),
            ("3.5", INTEGER, "3.5"),
            ("3e2", INTEGER, "3e2"),
            ("8", {"type": ["integer", "string"]}, 8),
        ),
        *(
            ("2.5", NUMBER, 2.5),
            ("3", NUMBER, 3),
            ("1e3", NUMBER, 1000.0),
            ("1E-2", NUMBER, 0.01),
            ("-0.5", NUMBER, -0.5),
            (".5", NUMBER, ".5"),
        ),
        *(
            ("NaN", NUMBER, "NaN"),
            ("Infinity", NUMBER, "Infinity"),
            ("1e999", NUMBER, "1e999"),
            ("1_000", NUMBER, "1_000"),
            ("٣", INTEGER, "٣"),
        ),
        *(
            ("9" * 500, INTEGER, "9" * 500),
            ("12345", STRING, "12345"),
            ("0042", STRING, "0042"),
            ("8 9", INTEGER, "8 9"),
        ),
        *(
            ('["b", 1]', ARRAY, ["b", 1]),
            ("['b', True, None]", ARRAY, ["b", True, None]),
            (" [] ", ARRAY, []),
            ("[1", ARRAY, "[1"),
        ),
        *(
            ('{"a": 1}', OBJECT, {"a": 1}),
            ("{'a': 1}", OBJECT, {"a": 1}),
            ("{1: 2}", OBJECT, "{1: 2}"),
            ("{'a', 'b'}", OBJECT, "{'a', 'b'}"),
        ),
        *(
            ('{"a": 1}', ARRAY, '{"a": 1}'),
            ("[1]", OBJECT, "[1]"),
            ("b, c", ARRAY, "b, c"),
            ("(1, 2)", ARRAY, "(1, 2)"),
            ("[x]", ARRAY, "[x]"),
        ),
        *(
            ('{"a": 1}', STRING, '{"a": 1}'),
            ("[NaN]", ARRAY, "[NaN]"),
            ("[1] x", ARRAY, "[1] x"),
            ("[__import__('os')]", ARRAY, "[__import__('os')]"),
        ),
        *((" padded ", STRING, " padded "), ("x", INTEGER, "x"), ("&amp;&lt;", STRING, "&amp;&lt;")),
        *(
            ("12345", {}, "12345"),
            ("true", {}, "true"),
            ("null", {}, "null"),
            ('{"a": 1}', {}, {"a": 1}),
            ("[1]", {}, [1]),
        ),
        *(("['a']", {}, "['a']"), ("{x}", {}, "{x}"), ("12345", True, "12345"), ("7", {"description": "no type"}, "7")),
    ],
)
def test_raw_text_is_read_by_its_schema(text: str, schema: object, value: object) -> None:
    assert is_same(untyped(text, schema), value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        *(
            ({"const": 3}, 3),
            ({"const": "3"}, "3"),
            ({"enum": [1, 3]}, 3),
            ({"enum": ["1", "3"]}, "3"),
            ({"enum": [None, 3.5]}, 3),
        ),
        *(({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3), ({"oneOf": [{"type": "string"}, {"enum": [3]}]}, 3)),
        *(
            ({"anyOf": [{"type": "integer"}, {}]}, "3"),
            ({"allOf": [{"type": ["integer", "string"]}, {"type": ["string", "null"]}]}, "3"),
        ),
        *(
            ({"allOf": [{"type": "number"}, {"description": "x"}]}, 3),
            ({"allOf": [{"type": "number"}, {"type": "integer"}]}, 3),
        ),
        *(
            ({"$ref": "#/$defs/count"}, 3),
            ({"$ref": "#/$defs/by~1way"}, 3),
            ({"$ref": "#/$defs/none"}, "3"),
            ({"$ref": "other.json"}, "3"),
        ),
        *(
            ({"$ref": "#/$defs/loop"}, "3"),
            ({"$ref": "#/$defs/self"}, "3"),
            ({"type": []}, "3"),
            ({"type": 3}, "3"),
            ({"enum": []}, "3"),
        ),
        *(
            ({"anyOf": []}, "3"),
            ({"anyOf": "x"}, "3"),
            ({"type": "string", "enum": [3]}, "3"),
            ({"$ref": "#/$defs/wide"}, 3),
            (None, "3"),
        ),
    ],
)
def test_the_types_a_schema_allows_are_found(schema: object, value: object) -> None:
    defs: dict[str, Any] = {
        "count": {"type": "integer"},
        "by/way": {"$ref": "#/$defs/count"},
        "loop": {"$ref": "#/$defs/loop"},
        "self": {"anyOf": [{"$ref": "#/$defs/self"}, {"type": "integer"}]},
        "wide": {"anyOf": [{"$ref": f"#/$defs/wide{1}"}] * 40},
        **{f"wide{n}": {"anyOf": [{"$ref": f"#/$defs/wide{n + 1}"}] * 40} for n in range(1, 6)},
        "wide6": {"type": "integer"},
    }
    document = {"type": "object", "properties": {"k": schema}, "$defs": defs}
    assert is_same(coerced({"k": "3"}, document, typed=False)["k"], value)


def test_a_property_may_be_declared_in_a_part_of_the_schema() -> None:
    schema = {"allOf": [{"properties": {"a": INTEGER}}, {"allOf": [{"properties": {"b": INTEGER}}]}, {"$ref": "#"}]}
    assert coerced({"a": "1", "b": "2", "c": "3"}, schema, typed=False) == {"a": 1, "b": 2, "c": "3"}


def test_nested_raw_values_are_read_by_their_own_schemas() -> None:
    schema = {"type": "object", "properties": {"n": INTEGER, "list": {"type": "array", "items": NUMBER}}}
    assert untyped({"n": "3", "list": ["1", "2.5", "x"]}, schema) == {"n": 3, "list": [1, 2.5, "x"]}


def test_values_inside_json_that_was_text_are_only_corrected() -> None:
    schema = {"type": "array", "items": {"anyOf": [INTEGER, NULL]}}
    assert untyped('["3", "null", 4]', schema) == [3, "null", 4]


@pytest.mark.parametrize(
    ("value", "schema", "wanted"),
    [
        *(("3", INTEGER, 3), ("2.5", NUMBER, 2.5), ("0042", INTEGER, "0042"), ("x", INTEGER, "x"), ("3", STRING, "3")),
        *(
            ("[1]", ARRAY, [1]),
            ('{"a": 1}', OBJECT, {"a": 1}),
            ("[1]", OBJECT, "[1]"),
            ("['a']", ARRAY, "['a']"),
            ("[1]", STRING, "[1]"),
        ),
        *(
            (3, STRING, "3"),
            (2.5, STRING, "2.5"),
            (3, NULLABLE, "3"),
            (3, {"type": ["string", "integer"]}, 3),
            (True, STRING, True),
        ),
        *(
            (None, STRING, None),
            (3, BOOLEAN, 3),
            ("true", BOOLEAN, "true"),
            ("null", NULL, "null"),
            (True, INTEGER, True),
            ("3", {}, "3"),
        ),
        *(
            ([1, "2"], {"type": "array", "items": STRING}, ["1", "2"]),
            ({"a": 1}, {"properties": {"a": STRING}}, {"a": "1"}),
            (3, {}, 3),
        ),
    ],
)
def test_typed_values_are_kept_and_only_a_mismatch_is_corrected(value: object, schema: object, wanted: object) -> None:
    assert is_same(typed(value, schema), wanted)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["[", '{"a": 1}', "3", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("kab"), inner, max_size=3),
    max_leaves=8,
)
schemas = st.recursive(
    st.sampled_from(
        [STRING, INTEGER, NUMBER, BOOLEAN, NULL, {}, {"$ref": "#"}, {"$ref": "#/properties/k"}, True, None, 3]
    ),
    lambda inner: (
        st.dictionaries(st.sampled_from(["items", "additionalProperties"]), inner, max_size=2)
        | st.dictionaries(st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, max_size=3), max_size=2)
        | st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("kab"), inner, max_size=2)})
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("kab"), json_values, max_size=3), schemas, st.booleans())
def test_no_schema_makes_coercion_raise_or_lose_a_key(values: dict[str, Any], schema: object, is_typed: bool) -> None:
    document = {"type": "object", "properties": {"k": schema, "a": schema}}
    assert coerced(values, document, typed=is_typed).keys() == values.keys()
