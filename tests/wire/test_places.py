"""Large objects are decoded as all others are, and edited without another look to the same bytes."""

from __future__ import annotations

import json
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.test_splice import KEYS, OBJECTS, SET, laid_out, spelled
from troyproxy.wire.json import MalformedJSON, decode
from troyproxy.wire.places import decode_large, places
from troyproxy.wire.splice import edit


@given(laid_out() | spelled() | st.binary(max_size=30))
def test_a_large_text_is_decoded_like_any_other(text: bytes) -> None:
    try:
        expected = decode(text)
    except MalformedJSON:
        with pytest.raises(MalformedJSON):
            decode_large(text)
        return
    assert repr(decode_large(text)[0]) == repr(expected)  # an int is no float, and a member stays in its place


@given(laid_out() | spelled())
def test_a_member_that_stands_twice_is_never_overlooked(text: bytes) -> None:
    value, single = decode_large(text)
    pairs: list[object] = []
    json.loads(text, object_pairs_hook=lambda found: pairs.append(len(found)))  # the outermost is the last
    assert isinstance(value, dict)
    assert not single or pairs[-1] == len(value)


@given(laid_out() | spelled(), SET | OBJECTS, st.sets(KEYS | st.just("n")))
def test_an_edit_of_what_is_known_gives_the_bytes_of_any_edit(
    text: bytes, changes: dict[str, object], drop: set[str]
) -> None:
    value, single = decode_large(text)
    known = value if single and isinstance(value, dict) else None
    assert edit(text, changes, drop, known) == edit(text, changes, drop)


WRITTEN = st.dictionaries(
    st.sampled_from(["model", "messages", "stream", "n", "max_tokens", "é", 'q"', "a\\", "tools"]),
    st.sampled_from(["model", 'x","model":"y', "é", "\\", '"', "", "}", "a, b: c"])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
    | st.lists(st.dictionaries(st.just("model"), st.text(max_size=3) | st.integers(), max_size=2), max_size=2),
    min_size=1,
)


@given(WRITTEN, SET, st.booleans(), st.booleans())
def test_the_places_are_those_that_the_whole_text_gives(
    value: dict[str, object], changes: dict[str, object], spaced: bool, ascii_only: bool
) -> None:
    comma_colon = (", ", ": ") if spaced else (",", ":")
    text = json.dumps(value, separators=comma_colon, ensure_ascii=ascii_only).encode()
    assert edit(text, changes, (), value) == edit(text, changes)


@pytest.mark.parametrize(
    "text",
    [
        b'{"model":"a","stream":false,"messages":[{"content":"\\"model\\":\\"a\\""}],"n":1}',
        b'{"messages":[{"content":"\\"model\\":\\"a\\""}],"model":"a","tools":[{"model":"a"}],"n":1}',
        b'{"messages": ["a"], "n": 1, "model": "a", "stream": true}',
        b'{"model": "a"}',
    ],
)
def test_a_text_in_a_usual_order_is_not_read_again(text: bytes) -> None:
    value, single = decode_large(text)
    assert isinstance(value, dict)
    assert single
    with patch("troyproxy.wire.splice._RAW", None):
        edited = edit(text, {"model": "m", "stream_options": {}}, (), value)
    assert (
        edited
        == text[:-1]
        .replace(b'el": "a"', b'el": "m"')
        .replace(b'"model":"a"', b'"model":"m"', 1)
        .replace(b'"model":"m","tools":[{"model":"a"', b'"model":"m","tools":[{"model":"a"')
        + b',"stream_options":{}}'
    )


@pytest.mark.parametrize(
    "text",
    [
        b'{"mod\\u0065l":"a"}',
        b'{"model":"\\u0061"}',
        b'{"model":"a" }',
        b'{"model":"a"}\n',
        b' {"model":"a"}',
        b'{"n":1.00,"model":"a"}',
        b'{"messages":[],"model":"a","top":[1, 2]}',
        b'{"messages":[],"model":"a", "n":1}',
        b'{"model":[],"c":1}',
        b"{}",
    ],
)
def test_any_other_spelling_is_not_plain(text: bytes) -> None:
    value = decode(text)
    assert isinstance(value, dict)
    assert places(text, value, ["model"] if value else []) is None


def test_what_is_added_stands_right_behind_the_last_value() -> None:
    text = b'{"model":null }'
    assert edit(text, {"n": 1}, (), {"model": None}) == edit(text, {"n": 1}) == b'{"model":null,"n":1 }'
