"""Changing members of an object changes no other byte and gives what decode, change, encode would give."""

from __future__ import annotations

import json

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
