"""Changing members of an object changes no other byte and gives what decode, change, encode would give."""

from __future__ import annotations

import json
import sys
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.json import MalformedJSON, decode, encode
from troyproxy.wire.splice import edit

KEYS = st.sampled_from(["model", "stream", "a", "é", "", "\ud83d", 'q"\\']) | st.text(
    st.characters(exclude_categories=[])
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=6)
SPACE = st.sampled_from(["", " ", "\n  ", "\t", "\r\n"])


@st.composite
def spelled(draw: st.DrawFn) -> bytes:
    """An object with odd spacing, escapes and duplicate keys."""
    members = []
    for key, value in draw(st.lists(st.tuples(KEYS, VALUES), max_size=6)):
        key_text = json.dumps(key, ensure_ascii=draw(st.booleans()) or not key.isprintable())
        members.append(draw(SPACE) + key_text + draw(SPACE) + ":" + draw(SPACE) + json.dumps(value) + draw(SPACE))
    return (draw(SPACE) + "{" + draw(SPACE) + ",".join(members) + "}" + draw(SPACE)).encode()


@given(spelled(), OBJECTS, st.lists(KEYS))
def test_an_edit_is_decode_change_encode(body: bytes, changes: dict[str, object], drop: list[str]) -> None:
    value = decode(body)
    assert isinstance(value, dict)
    expected = {key: inner for key, inner in value.items() if key not in drop or key in changes} | changes
    assert decode(edit(body, changes, drop)) == expected


@given(spelled(), OBJECTS, st.lists(KEYS))
def test_every_key_is_there_once(body: bytes, changes: dict[str, object], drop: list[str]) -> None:
    pairs = json.loads(edit(body, changes, drop), object_pairs_hook=list)
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys))


@given(spelled(), OBJECTS)
def test_an_edit_done_twice_changes_nothing_the_second_time(body: bytes, changes: dict[str, object]) -> None:
    once = edit(body, changes)
    assert edit(once, changes) is once


@given(OBJECTS)
def test_no_change_gives_the_same_object(value: dict[str, object]) -> None:
    body = encode(value)
    assert edit(body, {}) is body


@given(OBJECTS)
def test_the_same_values_give_the_same_object(value: dict[str, object]) -> None:
    body = json.dumps(value).encode()
    assert edit(body, value) is body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"a","n":1.50}', b'{"model":"m","n":1.50}'),
        (b' {\n "n" : 1E2 ,\n "model" : "a"\n}\n', b' {\n "n" : 1E2 ,\n "model" : "m"\n}\n'),
        (b'{"t": NaN, "model":"a", "s":"\\ud83d"}', b'{"t": NaN, "model":"m", "s":"\\ud83d"}'),
        (b'{"mod\\u0065l":"a"}', b'{"mod\\u0065l":"m"}'),
        ('{"é": 1,"model":"a"}'.encode(), '{"é": 1,"model":"m"}'.encode()),
        (b'{"n": {"model":"x"}}', b'{"n": {"model":"x"},"model":"m"}'),
        (b"{ }", b'{"model":"m" }'),
        (b'\xef\xbb\xbf{"model":"a"}', b'{"model":"m"}'),
        (b'{"model":"a", "x":1, "model":"b"}', b'{"x":1, "model":"m"}'),
        (b'{"model":"m", "model":"m"}', b'{"model":"m"}'),
        (b'{"x":12,"x":1,"model":"m"}', b'{"x":1,"model":"m"}'),
        (b'{"model":"a","x":"\\ud83d","model":"b"}', b'{"x":"\\ud83d","model":"m"}'),
    ],
)
def test_only_the_member_changes(body: bytes, expected: bytes) -> None:
    assert edit(body, {"model": "m"}) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"x":1}', b"{}"),
        (b'{ "x":1 }', b"{  }"),
        (b'{"x":1, "y":2}', b'{"y":2}'),
        (b'{"y":2, "x":1 }', b'{"y":2 }'),
        (b'{"y":2, "x":1 , "z":3}', b'{"y":2 , "z":3}'),
        (b'{"x":1,"y":[NaN]}', b'{"y":[NaN]}'),
    ],
)
def test_commas_are_right_after_a_removal(body: bytes, expected: bytes) -> None:
    assert edit(body, {}, {"x"}) == expected


def test_a_removed_first_member_makes_room_for_an_added_one() -> None:
    assert edit(b'{"x":1}', {"y": 2}, {"x"}) == b'{"y":2}'


def test_a_key_to_set_is_not_dropped() -> None:
    assert edit(b'{"x":1}', {"x": 2}, {"x"}) == b'{"x":2}'


def test_true_is_not_one() -> None:
    assert edit(b'{"stream":1}', {"stream": True}) == b'{"stream":true}'


def test_a_value_spelled_in_another_way_is_left_alone() -> None:
    body = b'{"x": {"a" : "\\u0062"}}'
    assert edit(body, {"x": {"a": "b"}}) is body


def test_duplicates_go_even_when_nothing_else_changes() -> None:
    assert edit(b'{"x":1,"y":2,"x":3}', {}) == b'{"y":2,"x":3}'


def test_a_byte_order_mark_goes_even_when_nothing_else_changes() -> None:
    assert edit(b'\xef\xbb\xbf{"x":1}', {}) == b'{"x":1}'


@pytest.mark.parametrize("body", [b"[]", b"1", b'"{}"', b"", b"{", b'{"a":1,}'])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedJSON):
        edit(body, {"model": "m"})


def test_an_object_too_deep_to_read_is_refused() -> None:
    with pytest.raises(MalformedJSON, match="too deep"):
        edit(b'{"a":' + b"[" * 100_000, {"model": "m"})


# --- the usual layouts ---

LAYOUTS = st.sampled_from([(",", ":"), (", ", ": "), (",", ": "), (", ", ":")])


@st.composite
def laid_out(draw: st.DrawFn) -> bytes:
    """An object as encoders write it, with keys that nest, repeat and look alike, and perhaps a byte too much."""
    comma, colon = draw(LAYOUTS)
    plain = st.sampled_from(["model", "messages", "stream", "n", "é"])
    texts = st.lists(st.sampled_from(["model", '"', ":", ",", "{", "\\", "é", "中", " "]), max_size=6).map("".join)
    nested = st.dictionaries(plain, texts, max_size=2)
    pairs = draw(st.lists(st.tuples(plain, texts | nested | st.integers() | st.none()), max_size=5))
    ascii_only = draw(st.booleans())
    dumped = [
        json.dumps(key, ensure_ascii=ascii_only)
        + colon
        + json.dumps(value, ensure_ascii=ascii_only, separators=(comma, colon))
        for key, value in pairs
    ]
    return ("{" + comma.join(dumped) + "}" + draw(st.sampled_from(["", "", "\n"]))).encode()


SET = st.dictionaries(st.sampled_from(["model", "stream_options", "n", "é"]), VALUES | st.just("model"), max_size=3)


@given(laid_out() | spelled(), SET, st.sets(st.sampled_from(["n", "stream"])))
def test_the_places_of_the_values_are_those_that_lining_up_finds(
    body: bytes, changes: dict[str, object], drop: set[str]
) -> None:
    with patch("troyproxy.wire.splice._in_place", return_value=None):
        expected = edit(body, changes, drop)
    assert edit(body, changes, drop) == expected


@given(laid_out(), SET)
def test_an_edit_of_a_usual_layout_is_decode_change_encode(body: bytes, changes: dict[str, object]) -> None:
    value = decode(body)
    assert isinstance(value, dict)
    pairs = json.loads(edit(body, changes), object_pairs_hook=list)
    assert len(pairs) == len({key for key, _ in pairs})
    assert decode(edit(body, changes)) == value | changes


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"m":[{"model":"x"}],"model":"a"}', b'{"m":[{"model":"x"}],"model":"m"}'),
        (b'{"m": "\\"model\\": 1", "model": "a", "n": 1}', b'{"m": "\\"model\\": 1", "model": "m", "n": 1}'),
        (b'{"a":1,"b":2,"a":3,"model":"x"}', b'{"b":2,"a":3,"model":"m"}'),
        (b'{"a":12,"a":1}', b'{"a":1,"model":"m"}'),
        (b'{"a": 1, "b": 2}', b'{"a": 1, "b": 2,"model":"m"}'),
        (b'{"n":1,"model":"m"}', b'{"n":1,"model":"m"}'),
        ('{"中":1,"model":"中"}'.encode(), '{"中":1,"model":"m"}'.encode()),
    ],
)
def test_a_value_is_replaced_where_it_stands(body: bytes, expected: bytes) -> None:
    assert edit(body, {"model": "m"}) == expected


def test_a_megabyte_is_copied_once_and_not_lined_up() -> None:
    body = encode({"messages": [{"role": "user", "content": "x" * (1 << 20)}], "model": "a", "stream": True})
    with patch("troyproxy.wire.splice._line_up", side_effect=AssertionError):
        edited = edit(body, {"model": "m", "stream_options": {"include_usage": True}})
    assert edited == body.replace(b'"model":"a"', b'"model":"m"')[:-1] + b',"stream_options":{"include_usage":true}}'


def test_at_the_edge_of_what_can_be_read_an_object_is_edited_or_refused() -> None:
    ended = set()
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit() + 20):
        body = b'{"a":1,"a":' + b"[" * depth + b"]" * depth + b"}"
        try:
            ended.add(edit(body, {}).startswith(b'{"a":[['))
        except MalformedJSON as exc:
            ended.add(str(exc) != "too deep")
    assert ended == {True, False}
