"""What stands in Redis and what is said over it, as bytes: JSON with a version. No connection here.

A reader ignores what it does not understand: another version, another type, garbage. Equal events give equal bytes on
every instance, so two that know the same lock keep it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from troyproxy.ports import News
from troyproxy.resilience.events import Event, from_record, to_record
from troyproxy.store.encoding import plain

VERSION: Final = 1
"""Of a message; records have their own (`resilience.events.VERSION`)."""
LONGEST: Final = 4096
"""Bytes of one record. A model's name may come from a client; what is longer is not shared."""


def encode(event: Event) -> bytes | None:
    """Return *event* as a record; None when it is too long to be shared."""
    record = msgspec.json.encode(plain(to_record(event)), order="sorted")
    return record if len(record) <= LONGEST else None


def decode(record: bytes) -> Event | None:
    """Return the event of a record; None when this version cannot read it."""
    return _event(_object(record))


def encode_news(source: str, records: Iterable[bytes], revision: int | None = None) -> bytes:
    """Return a message of the instance *source*; *records* are encoded already."""
    events = [msgspec.Raw(record) for record in records]
    return msgspec.json.encode({"v": VERSION, "from": source, "events": events, "revision": revision})


def decode_news(message: bytes, *, ours: str) -> News | None:
    """Return what a message says; None for our own, and for one that this version cannot read."""
    found = _object(message)
    if found.get("v") != VERSION or found.get("from") == ours:
        return None
    events, revision = found.get("events"), found.get("revision")
    heard = [_event(each) for each in events if isinstance(each, dict)] if isinstance(events, list) else []
    known = revision if isinstance(revision, int) and not isinstance(revision, bool) else None
    return News(tuple(event for event in heard if event is not None), known)


def _object(data: bytes) -> Mapping[str, object]:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _event(record: Mapping[str, object]) -> Event | None:
    try:
        return from_record(record)
    except ValueError:
        return None
