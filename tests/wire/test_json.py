"""Odd JSON is read and written; what is no JSON gives one error."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.json import MalformedJSON, decode, decoded, encode

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=[])), inner),
)


@pytest.mark.parametrize(("data", "value"), [(b'{"a":NaN}', {"a": math.nan}), (b"[1]", [1]), (b"{", None), (b"", None)])
def test_what_is_no_json_is_nothing_to_who_asks_so(data: bytes, value: object) -> None:
    assert repr(decoded(data)) == repr(value)


@given(st.binary())
def test_arbitrary_bytes_give_a_value_or_one_error(data: bytes) -> None:
    try:
        decode(data)
    except MalformedJSON as exc:
        assert str(exc)  # noqa: PT017 - either outcome is right, but an error says why


@given(st.text(st.sampled_from('{}[]",:\\u0d83tfnae+-. \n')).map(str.encode))
def test_nearly_json_gives_a_value_or_one_error(data: bytes) -> None:
    try:
        decode(data)
    except MalformedJSON as exc:
        assert str(exc)  # noqa: PT017 - either outcome is right, but an error says why


@given(VALUES)
def test_what_is_written_reads_back_as_the_same_value(value: object) -> None:
    assert decode(encode(value)) == value


@given(VALUES)
def test_both_decoders_read_the_same(value: object) -> None:
    text = json.dumps(value)
    assert decode(text.encode()) == json.loads(text)


def test_a_lone_surrogate_is_read_and_written_as_the_same_escape() -> None:
    assert encode(decode(rb'{"a":"hi \ud83d"}')) == rb'{"a":"hi \ud83d"}'


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert decode(rb'"\ud83d\ude42"') == "🙂"


def test_numbers_that_are_none_are_read_and_written_as_they_came() -> None:
    assert encode(decode(b"[NaN,Infinity,-Infinity,null]")) == b"[NaN,Infinity,-Infinity,null]"


def test_null_does_not_change_the_encoder() -> None:
    assert encode({"é": None}) == '{"é":null}'.encode()


def test_an_exponent_out_of_range_is_infinite() -> None:
    assert decode(b"1e999") == math.inf


def test_the_last_duplicate_key_wins_in_both_decoders() -> None:
    assert (decode(b'{"a":1,"a":2}'), decode(b'{"a":NaN,"a":2}')) == ({"a": 2}, {"a": 2})


def test_a_byte_order_mark_is_skipped() -> None:
    assert decode(b"\xef\xbb\xbf{}") == {}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b'{"a":\xff}', "not UTF-8"),
        (b"{", "Expecting property name enclosed in double quotes at character 1"),
        (b"1 2", "Extra data at character 2"),
        (b"[" * 100_000, "too deep"),
        (b"[NaN," + b"[" * 100_000, "too deep"),
        (b"1" * 5000, "integer too large"),
    ],
)
def test_what_cannot_be_read_has_a_short_reason(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedJSON) as caught:
        decode(data)
    assert str(caught.value) == reason


def test_a_value_too_deep_to_write_is_malformed() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(MalformedJSON, match="too deep"):
        encode(value)
