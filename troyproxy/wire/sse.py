"""Event streams over bytes: cut them into frames, build frames, change the data of a frame.

Follows the WHATWG grammar (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.5):
lines end at LF, CR or CRLF and nowhere else, one space after the colon is optional, several ``data`` lines
join with LF. Nothing is decoded to text, so a character may be cut anywhere.

It does no I/O and reads no JSON; whether a frame is worth forwarding is for others to say.

The one ambiguous place is a CR at the end of a read: it may be half a CRLF. When the line before ended with a lone
CR too, the event is complete at once (an LF that follows is a blank line of its own); in all other cases the frame
waits for the next byte. So frames are the same wherever the stream was cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

_BOM: Final = b"\xef\xbb\xbf"
_BOUNDARY: Final = re.compile(rb"\r\r|\n(?:\n|\r\n|\r(?!\Z))")
_BOUNDARY_AT_END: Final = re.compile(rb"\r\r|\n(?:\n|\r\n|\r)")
_BLANK: Final = re.compile(rb"\n|\r\n|\r(?!\Z)")
_BLANK_AT_END: Final = re.compile(rb"\n|\r\n?")
_EOL: Final = re.compile(rb"\r\n|\n|\r")
_LINE: Final = re.compile(rb"([^\r\n]*)(\r\n|\n|\r)")

_DATA: Final = b"data: "
_LF: Final = 10

DONE: Final = b"data: [DONE]\n\n"


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event with the blank line that ends it.

    *raw* is what the upstream sent, byte for byte. *data* is None when the frame has no ``data`` field (comments,
    ``retry``, ``id``, blank lines) and empty when the field is. *complete* is False for the last event of a stream
    that ended without a blank line: *raw* was given the missing line ends, and the data may be cut short.
    """

    raw: bytes
    data: bytes | None
    event: bytes | None = None
    complete: bool = True

    @property
    def is_comment(self) -> bool:
        """Whether nothing is dispatched: no ``data`` field at all."""
        return self.data is None

    @property
    def is_done(self) -> bool:
        """Whether this is the ``[DONE]`` that ends an OpenAI stream."""
        return self.data is not None and self.data.strip() == b"[DONE]"


class StreamTooLong(ValueError):
    """One event is longer than the limit. *frames* are those completed before it by the same read."""

    def __init__(self, limit: int, frames: list[Frame]) -> None:
        super().__init__(f"an event of the stream is longer than {limit} bytes")
        self.frames = frames


class FrameDecoder:
    """Cuts a byte stream into frames in linear time; *limit* bounds one event, in bytes.

    A UTF-8 byte order mark at the very start is taken off, because most clients would lose the first event to it.
    """

    __slots__ = ("_begun", "_buffer", "_has_cr", "_limit", "_searched")

    def __init__(self, limit: int = 16 << 20) -> None:
        self._buffer = bytearray()
        self._searched = 0  # no boundary begins before this offset
        self._limit = limit
        self._begun = False
        self._has_cr = False

    def feed(self, chunk: bytes, *, last: bool = False) -> list[Frame]:
        """Return the frames that *chunk* completes; with *last* also an event that lacks its blank line.

        Raises StreamTooLong when an event, finished or not, is over the limit; what was buffered is gone then.
        """
        if frames := self.at_once(chunk):
            self._begun = True
            return frames
        self._buffer += chunk
        self._has_cr = self._has_cr or b"\r" in chunk
        if not (self._begun or self._begin(last=last)):
            return []
        frames = []
        start = 0
        while (end := self._boundary(start, last=last)) >= 0:
            self._check(end - start, frames)
            frames.append(_frame(bytes(self._buffer[start:end])))
            start = self._searched = end
        self._check(len(self._buffer) - start, frames)
        del self._buffer[:start]
        # A boundary is at most three bytes long, so its first two may already be here.
        self._searched = max(0, len(self._buffer) - 2)
        return [*frames, *self._rest()] if last else frames

    def at_once(self, chunk: bytes) -> list[Frame]:
        """Return the frames of a read that is nothing but whole events of one ``data: `` line each, and keep nothing.

        For any other read: no frames, and none of it is taken. Nearly every read of nearly every stream looks like
        that. The bytes of a read that is one event are not copied.
        """
        size = len(chunk)
        if chunk[:6] != _DATA or self._buffer or size > self._limit or chunk.find(b"\r") >= 0:
            return []
        if chunk[-1] == _LF and chunk.find(b"\n") == size - 2:
            return [Frame(chunk, chunk[6:-2])]
        return _plain_events(chunk)

    def _begin(self, *, last: bool) -> bool:
        """Take off a byte order mark; False while too few bytes are here to tell."""
        if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer) and not last:
            return False
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        self._begun = True
        return True

    def _boundary(self, start: int, *, last: bool) -> int:
        """Return the offset after the next blank line, or -1."""
        if blank := (_BLANK_AT_END if last else _BLANK).match(self._buffer, start):
            return blank.end()
        if not self._has_cr:  # twenty times faster than the pattern, and nearly every stream
            found = self._buffer.find(b"\n\n", self._searched)
            return found + 2 if found >= 0 else -1
        match = (_BOUNDARY_AT_END if last else _BOUNDARY).search(self._buffer, self._searched)
        return match.end() if match else -1

    def _check(self, length: int, frames: list[Frame]) -> None:
        if length > self._limit:
            self._buffer.clear()
            self._searched = 0
            raise StreamTooLong(self._limit, frames)

    def _rest(self) -> list[Frame]:
        """Return the unterminated event at the end of input, terminated, so that more can be sent after it."""
        raw = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        if not raw:
            return []
        # After a CR an LF would only make it a CRLF, and the event would stay open.
        missing = b"\r" if raw.endswith(b"\r") else b"\n" if raw.endswith(b"\n") else b"\n\n"
        return [_frame(raw + missing, complete=False)]


def _plain_events(chunk: bytes) -> list[Frame]:
    lines = chunk.split(b"\n\n")
    if lines.pop():
        return []
    frames = []
    for line in lines:
        if line[:6] != _DATA or line.find(b"\n") >= 0:
            return []
        frames.append(Frame(line + b"\n\n", line[6:]))
    return frames


def _frame(raw: bytes, *, complete: bool = True) -> Frame:
    lines = _EOL.split(raw) if b"\r" in raw else raw.split(b"\n")
    data: list[bytes] = []
    event: bytes | None = None
    for line in lines:
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ")
    return Frame(raw, b"\n".join(data) if data else None, event, complete)


def encode_data(data: bytes) -> bytes:
    """Return one event that carries *data*; line ends inside it become several ``data`` lines."""
    return b"".join(b"data: " + line + b"\n" for line in _EOL.split(data)) + b"\n"


def encode_comment(text: str) -> bytes:
    """Return *text* as a comment, which keeps a connection alive and is never dispatched."""
    lines = _EOL.split(text.encode("utf-8", "replace"))
    return b"".join(b": " + line + b"\n" for line in lines) + b"\n"


def with_data(frame: Frame, data: bytes) -> Frame:
    """Return *frame* with other data; the other fields, the spacing and the line ends stay as they are."""
    if frame.raw == b"data: %b\n\n" % (frame.data or b"") and data.find(b"\n") < 0 and data.find(b"\r") < 0:
        return Frame(b"data: %b\n\n" % data, data, frame.event, frame.complete)
    lines: list[tuple[bytes, bytes]] = _LINE.findall(frame.raw)
    values = _EOL.split(data)
    at = next((i for i, (line, _) in enumerate(lines) if _is_data(line)), len(lines) - 1)
    old, eol = lines[at]
    tight = old.startswith(b"data:") and not old.startswith(b"data: ")
    kept = b"".join(line + end for line, end in lines[at:-1] if not _is_data(line))
    head = b"".join([*(line + end for line, end in lines[:at]), *_data_lines(values, eol, tight=tight), kept])
    # Where line ends were mixed, a CR and the blank line's LF must not become one CRLF.
    raw = head + (b"\r" if head.endswith(b"\r") else lines[-1][1])
    return Frame(raw, b"\n".join(values), frame.event, frame.complete)


def _is_data(line: bytes) -> bool:
    return line == b"data" or line.startswith(b"data:")


def _data_lines(values: Iterable[bytes], eol: bytes, *, tight: bool) -> Iterable[bytes]:
    """Yield ``data`` lines; *tight* leaves out the space where it would not be missed."""
    for value in values:
        yield (b"data:" if tight and not value.startswith(b" ") else b"data: ") + value + eol
