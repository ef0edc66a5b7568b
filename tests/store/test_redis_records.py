"""Records and messages: what is written can be read, and what cannot be understood is ignored."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.ports import News
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.events import CircuitOpened, Cleared, Event, Locked, to_record
from troyproxy.store.redis_records import LONGEST, decode, decode_news, encode, encode_news

LOCK = Locked(5.0, "alpha", "A", "m1", 65.25, soft=False, error_class=ErrorClass.RATE)
CLEARED = Cleared(7.0, "alpha")


def said(*events: Event, revision: int | None = None) -> bytes:
    return encode_news("them", [record for event in events if (record := encode(event))], revision)


NAMES = st.text(st.characters(exclude_characters="\0", codec="utf-8"))


@given(st.builds(Locked, at=st.floats(0, 1e12), until=st.floats(0, 1e12), account=NAMES, provider=NAMES, model=NAMES))
def test_a_lock_comes_back_as_it_was(event: Locked) -> None:
    record = encode(event)
    assert record is None or decode(record) == event


def test_equal_events_give_equal_bytes() -> None:
    assert encode(LOCK) == encode(replace(LOCK))


def test_a_record_that_is_too_long_is_not_shared() -> None:
    assert encode(CircuitOpened(1.0, "alpha", "m" * LONGEST, 2.0, 1.0)) is None


def test_a_name_that_is_no_unicode_is_written_all_the_same() -> None:
    record = encode(CircuitOpened(1.0, "alpha", "\ud800", 2.0, 1.0))
    assert record is not None
    assert isinstance(decode(record), CircuitOpened)


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        json.dumps({**to_record(LOCK), "v": 2}).encode(),
        json.dumps({**to_record(LOCK), "type": "thawed"}).encode(),
        json.dumps({**to_record(LOCK), "until": "noon"}).encode(),
    ],
)
def test_a_record_of_another_version_or_garbage_is_ignored(record: bytes) -> None:
    assert decode(record) is None


def test_a_message_comes_back_as_it_was() -> None:
    assert decode_news(said(LOCK, CLEARED, revision=7), ours="us") == News((LOCK, CLEARED), 7)


def test_our_own_message_is_not_heard() -> None:
    assert decode_news(said(LOCK), ours="them") is None


@pytest.mark.parametrize(
    "message", [b"", b"\xff\xfe", b"7", b'{"v": 2, "events": [], "revision": 3}', b'{"from": "x"}']
)
def test_a_message_of_another_version_or_garbage_is_ignored(message: bytes) -> None:
    assert decode_news(message, ours="us") is None


@pytest.mark.parametrize(
    ("message", "news"),
    [
        ({"v": 1}, News()),
        ({"v": 1, "events": 7, "revision": "9"}, News()),
        ({"v": 1, "events": [7, {"v": 9}, to_record(CLEARED)], "revision": True}, News((CLEARED,))),
    ],
)
def test_of_a_message_what_is_understood_is_taken(message: dict[str, object], news: News) -> None:
    assert decode_news(json.dumps(message).encode(), ours="us") == news
