"""The words of JSON Schema, and the bodies that shapes read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest

from troyproxy.api.admin.schemas import (
    COUNT,
    TEXT,
    body_of,
    exactly,
    listing,
    mapping,
    nullable,
    one_of,
    some,
    titled,
    with_warnings,
)
from troyproxy.settings import leaves
from troyproxy.settings.shapes import Shape, record
from troyproxy.settings.shapes import listing as shape_listing


def _kept(**given: object) -> Mapping[str, object]:
    return given


SHAPE: Shape[Any] = record(
    {"name": leaves.text(), "size": leaves.whole(1, 9), "parts": shape_listing(record({"id": leaves.text()}, _kept))},
    _kept,
    ["name"],
)


def takes(schema: Mapping[str, object], value: object) -> bool:
    return jsonschema_rs.is_valid(dict(schema), value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (exactly(a=TEXT), {"a": "x"}, {}),
        (exactly(a=TEXT), {"a": "x"}, {"a": "x", "b": 1}),
        (some({"a": TEXT}), {}, {"a": 1}),
        (some({"a": TEXT, "b": TEXT}, required=["a"]), {"a": "x"}, {"b": "x"}),
        (nullable(COUNT), None, -1),
        (listing(COUNT), [1], ["x"]),
        (mapping(COUNT), {"x": 1}, {"x": "y"}),
        (one_of("a", "b"), "a", "c"),
        (titled("Thing", TEXT), "x", 1),
        (with_warnings(exactly(a=TEXT)), {"a": "x", "warnings": ["w"]}, {"a": "x"}),
    ],
)
def test_a_schema_takes_what_it_says(schema: Mapping[str, object], good: object, bad: object) -> None:
    assert (takes(schema, good), takes(schema, bad)) == (True, False)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x"},
        {"name": "x", "size": None},
        {"name": "x", "parts": None},
        {"name": "x", "parts": [{"id": None}]},
        {"name": "x", "version": {"anything": 1}},
    ],
)
def test_a_body_may_leave_out_and_may_send_back(body: object) -> None:
    assert takes(body_of(SHAPE, ignored=["version"]), body)


@pytest.mark.parametrize("body", [{}, {"name": None}, {"name": "x", "size": 10}, {"name": "x", "version": 1}])
def test_a_body_is_no_wider_than_the_reader(body: object) -> None:
    assert not takes(body_of(SHAPE), body)


@pytest.mark.parametrize("body", [{}, {"name": None}, {"size": 3}])
def test_a_partial_body_requires_nothing(body: object) -> None:
    assert takes(body_of(SHAPE, partial=True), body)


def test_a_shape_that_is_no_record_has_no_body() -> None:
    with pytest.raises(TypeError):
        body_of(Shape(SHAPE.read, {"properties": 1}))


def test_what_has_no_properties_carries_no_warnings() -> None:
    with pytest.raises(TypeError):
        with_warnings({"properties": 1})
