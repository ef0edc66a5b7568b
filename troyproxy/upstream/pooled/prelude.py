"""What comes before an answer: informational heads, which are skipped, and a start that must be HTTP/1.x. No I/O."""

from __future__ import annotations

from typing import Final

import httptools

MAX_INFORMATIONAL: Final = 16
"""Heads of class 1xx before the answer."""
MAX_INFORMATIONAL_BYTES: Final = 1 << 13
"""Bytes of one."""

_STARTS: Final = frozenset({b"HTTP/1.1 ", b"HTTP/1.0 "})
_STATUS_AT: Final = 9


class Malformed(Exception):
    """The peer does not speak HTTP as it should. The message names the rule and holds nothing of the peer's."""


class Prelude:
    """Waits for the answer's own head to begin."""

    __slots__ = ("_count", "_pending")

    def __init__(self) -> None:
        self._pending = b""
        self._count = 0

    def feed(self, data: bytes) -> bytes | None:
        """Return what the answer begins with; None while more is needed to tell. Raises Malformed."""
        data = self._pending + data
        self._pending = b""
        while True:
            if data[:_STATUS_AT] not in _STARTS and not _may_start(data):
                raise Malformed("no HTTP/1 status line")
            if len(data) <= _STATUS_AT:
                break
            if data[_STATUS_AT] != ord("1"):
                return data
            end = data.find(b"\r\n\r\n")
            if end < 0 and len(data) <= MAX_INFORMATIONAL_BYTES:
                break
            if not 0 <= end <= MAX_INFORMATIONAL_BYTES:
                raise Malformed("an informational head is too long")
            self._skip(data[: end + 4])
            data = data[end + 4 :]
        self._pending = data
        return None

    def _skip(self, head: bytes) -> None:
        self._count += 1
        if head[_STATUS_AT : _STATUS_AT + 3] == b"101":
            raise Malformed("the peer changes the protocol")
        if self._count > MAX_INFORMATIONAL:
            raise Malformed("too many informational heads")
        try:
            httptools.HttpResponseParser(_Nobody()).feed_data(head)
        except httptools.HttpParserError as exc:
            raise Malformed(f"in an informational head: {exc}") from exc


class _Nobody:
    """Listens to nothing."""


def _may_start(data: bytes) -> bool:
    """Whether *data* is too short to tell, and right so far."""
    return len(data) < _STATUS_AT and any(start.startswith(data) for start in _STARTS)
