"""What a glance finds is what the decoder finds, and it takes nothing for an answer that is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.chat import is_plain
from troyproxy.wire.glance import glance
from troyproxy.wire.json import decoded

USAGE: Final = {"prompt_tokens": 9, "completion_tokens": 32, "details": {"cached": 1.5}}
PLAIN: Final[Mapping[str, object]] = {
    "id": "chatcmpl-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": 'a "b"\n'}, "finish_reason": "stop"}],
    "usage": USAGE,
    "x": [{"y": None}],
}


def _answer(**changes: object) -> bytes:
    return json.dumps({**PLAIN, **changes}).encode()


def _message(message: object, **more: object) -> bytes:
    return _answer(choices=[{"message": message, **more}])


def test_a_plain_answer_shows_its_usage() -> None:
    assert glance(_answer()) == USAGE


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"null", b"[]", b"{}", _answer()[:-1], _answer() + b"x", b"\xef\xbb\xbf" + _answer()),
        *(_answer(error=None), _answer(error={"message": "no"}), _answer(usage=None), _answer(usage="9")),
        *(_answer(choices=None), _answer(choices=[]), _answer(choices=[{}]), _answer(choices=[1])),
        *(_answer(choices=[{"message": {"content": "a"}}] * 2), _answer(choices=[{"text": "a"}])),
        *(_message(None), _message("a"), _message({}), _message({"content": ""}), _message({"content": None})),
        *(_message({"content": [{"type": "text", "text": "a"}]}), _message({"content": 12345})),
        *(_message({"content": "a"}, delta={}), _message({"content": "a"}, delta={"content": "b"})),
        _answer(usage={"prompt_tokens": 1e308}).replace(b"1e+308", b"1e999"),
        _answer(x="\u00e9").replace(b"\\u00e9", b"\xc3\xa9"),
        _answer(x="a").replace(b'"a"', b'"\xff"'),
        _message({"content": "AAA"}).replace(b"AAA", b"\\x"),
        _message({"content": "AAA"}).replace(b"AAA", b"\\ud800"),
        _message({"content": "AAA"}).replace(b"AAA", b"\n"),
        _answer(x=0).replace(b'"x": 0', b'"x": ' + b"[" * 100_000 + b"]" * 100_000),
        b'{"choices":' + b"[" * 100_000,
    ],
)
def test_whatever_is_not_plain_is_left_to_the_decoder(body: bytes) -> None:
    assert glance(body) is None


_TEXTS: Final = st.text(st.sampled_from('ab"\\\n\u00e9\U0001f600/{}[]:,\x7f '), max_size=6)
_VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**20) | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=4,
)
_MESSAGES: Final = st.fixed_dictionaries({}, optional={"content": _TEXTS | _VALUES, "role": _VALUES})
_CHOICES: Final = st.fixed_dictionaries({"message": _MESSAGES | _VALUES}, optional={"delta": _VALUES, "index": _VALUES})
_BODIES: Final = st.fixed_dictionaries(
    {"choices": st.lists(_CHOICES, min_size=1, max_size=2) | _VALUES},
    optional={"usage": st.just(USAGE) | _VALUES, "error": _VALUES, "id": _VALUES},
)
_WOUNDS: Final = st.sampled_from(
    [b"", b'"', b"\\", b"\\u12", b"\\ud83d", b"\x00", b"\xff", b"}", b"]", b",", b":", b"1", b"-", b".", b"e", b"NaN"]
)


def _as_decoded(body: bytes) -> object:
    value = decoded(body)
    return value["usage"] if isinstance(value, dict) and is_plain(value) and "usage" in value else None


def _agrees(body: bytes) -> bool:
    """Whether what is found, if anything, is what the decoder finds."""
    found = glance(body)
    return found is None or found == _as_decoded(body)


@given(_BODIES, st.booleans(), st.integers(0, 1 << 16), st.integers(0, 3), _WOUNDS)
def test_it_agrees_with_the_decoder_also_on_broken_bodies(
    value: dict[str, object], ascii_only: bool, at: int, cut: int, wound: bytes
) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8")
    at %= len(body) + 1
    assert _agrees(body)
    assert _agrees(body[:at] + wound + body[at + cut :])


@given(st.lists(st.tuples(st.sampled_from(["choices", "usage", "error", "x"]), _VALUES), max_size=3))
def test_it_agrees_where_members_stand_twice(more: list[tuple[str, object]]) -> None:
    members = [*PLAIN.items(), *more]
    body = b"{%b}" % b",".join(b"%b:%b" % (json.dumps(k).encode(), json.dumps(v).encode()) for k, v in members)
    assert _agrees(body)


@given(_TEXTS.filter(len), _TEXTS)
def test_every_ascii_answer_in_one_text_is_seen(text: str, other: str) -> None:
    assert glance(_message({"content": text, "refusal": other})) == USAGE
