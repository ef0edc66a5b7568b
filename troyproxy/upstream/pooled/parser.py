"""Bytes to one HTTP response: strict, bounded, without I/O.

httptools (llhttp in its strict mode) cuts heads and chunks. Refused by it: obsolete folding, bare CR and LF, NUL and
other controls in a value, names that are no tokens, two lengths, a length beside a transfer coding, sizes that are no
hexadecimal numbers or overflow. Refused here, because it lets them through: controls in the reason, a transfer coding
that is not exactly ``chunked``, heads and lines and trailers and chunk extensions without measure; and in `prelude`,
what comes before an answer.

A body of known length and one that ends with its connection do not pass through httptools: they are counted here and
not copied. Nor does a chunk that is a read of its own, as the events of a stream mostly are, where it is spelled as
nearly everybody does it: any other spelling is httptools' to judge.
"""

from __future__ import annotations

import re
from typing import Final

import httptools

from troyproxy.upstream.pooled.prelude import Malformed, Prelude

MAX_HEAD: Final = 1 << 16
"""Bytes of a response head."""
MAX_LINE: Final = 1 << 15
"""Bytes of one header; some vendors send long policies."""
MAX_HEADERS: Final = 200
MAX_EXCESS: Final = 1 << 14
"""Bytes of chunk sizes, extensions and trailers beyond `FRAMING_SHARE` times the data."""
FRAMING_SHARE: Final = 8
"""A chunk of one byte costs five bytes of framing; nobody honest needs eight."""

_FRAMING: Final = frozenset({b"transfer-encoding", b"content-length", b"content-encoding"})
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class Cut(Exception):
    """The connection ended before the response did."""


class ResponseParser:
    """Reads one response. *bodiless*: it answers a HEAD, so it has no body whatever its head says."""

    __slots__ = (
        "_bodiless",
        "_chunked",
        "_count",
        "_excess",
        "_extra",
        "_flat",
        "_found",
        "_head_bytes",
        "_keep",
        "_left",
        "_length",
        "_machine",
        "_outside",
        "_prelude",
        "_reason",
        "_until_close",
        "body",
        "coded",
        "complete",
        "headers",
        "held",
        "on_chunk_complete",
        "on_chunk_header",
        "status",
        "taken",
    )

    def __init__(self, *, bodiless: bool = False) -> None:
        self._bodiless = bodiless
        self._machine: httptools.HttpResponseParser | None = None
        self._prelude = Prelude()
        self._chunked = self._until_close = self._extra = self._keep = False
        self._found: list[tuple[bytes, bytes]] = []
        self._length: int | None = None
        self._left = 0
        """What is still to come of a body of known length; not above 0 for any other."""
        self._outside = [True, False]
        """Reversed by each begin and each end of a chunk: the first says whether none is open."""
        self.on_chunk_header = self.on_chunk_complete = self._outside.reverse
        self._flat = False
        """Whether the machine has read to the end of the head or of a chunk, and nothing behind it."""
        self._excess = self._head_bytes = self._count = 0
        self._reason = ""
        self.status = 0
        self.headers: tuple[tuple[bytes, bytes], ...] | None = None
        """The head, once it is there whole: raw pairs, names in lower case."""
        self.coded = False
        """Whether a content coding is named."""
        self.body: list[bytes] = []
        """What came of the body and was not taken."""
        self.held = 0
        """Its bytes."""
        self.complete = self.taken = False
        """`taken`: whether a reader has had a part of the body."""

    @property
    def reusable(self) -> bool:
        """Whether another request may follow on the connection."""
        return self.complete and self._keep and not self._extra

    def feed(self, data: bytes) -> None:
        """Take *data*. Raises Malformed; what was read before it stays to be taken."""
        if self._left > 0:
            self._count_down(data)
        elif self.complete:
            self._extra = True
        elif self._until_close:
            self._keep_part(data)
        elif self._machine is not None:
            self._parse(self._machine, data)
        else:
            self._start(data)

    def only_chunk(self, data: bytes) -> bytes:
        """Return the content of *data* if it is one whole chunk, and nothing before it is left; b"" for anything else.

        It is not taken: `feed` it, or let somebody else have its content, in the place of that.
        """
        if not self._flat or self.held:
            return b""
        at = data.find(b"\r\n", 0, 10)
        size = len(data) - at - 4
        if at < 1 or size < 1 or data[:at] != b"%x" % size or data[-2:] != b"\r\n":
            return b""
        return data[at + 2 : -2]

    def _start(self, data: bytes) -> None:
        answer = self._prelude.feed(data)
        if answer is not None:
            self._machine = httptools.HttpResponseParser(self)
            self._parse(self._machine, answer)

    def end(self, *, whole: bool = True) -> None:
        """Nothing more will come. Raises Cut unless that is how the response ends, and *whole* (RFC 9112, 9.8)."""
        if self._until_close and whole:
            self._finish()
        elif not self.complete:
            raise Cut("the connection ended inside the response" if self.status else "the connection ended")

    def take(self) -> bytes:
        """Return what is held and hold nothing."""
        body = self.body
        data = body[0] if len(body) == 1 else b"".join(body)
        body.clear()
        self.held = 0
        self.taken = True
        return data

    def seen(self) -> bytes:
        """Return what is held; it stays to be taken."""
        return self.body[0] if len(self.body) == 1 else b"".join(self.body)

    def whole(self) -> bytes | None:
        """Return the body if it is complete and nothing was taken; it stays to be taken."""
        if not self.complete or self.taken:
            return None
        if len(self.body) > 1:
            self.body[:] = [b"".join(self.body)]
        return self.body[0] if self.body else b""

    def release(self) -> None:
        """Let go of the machine: it holds methods of this object, and that is a circle. What is held stays."""
        self._machine, self._flat = None, False

    def stop(self) -> None:
        """Hold nothing any more."""
        self.release()
        self.part_with()

    def fill(self, into: list[bytes]) -> None:
        """Hold the body in *into* from now on: what is held, and what comes."""
        into += self.body
        self.body = into

    def part_with(self) -> None:
        """Leave what is held to whoever has it, and hold nothing."""
        self.body = []
        self.held = 0
        self.taken = True

    # --- head and chunks ---

    def _parse(self, machine: httptools.HttpResponseParser, data: bytes) -> None:
        begun, before, self._flat = self.headers is not None, self.held, False
        try:
            machine.feed_data(data)
        except httptools.HttpParserError as exc:
            if not self.complete:
                raise Malformed(self._reason or str(exc)) from exc
            self._extra = True  # bytes behind the end
        if self.complete:
            return
        if self.headers is None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                raise Malformed("the head is too long")
            return
        if begun:
            excess = self._excess + len(data) - (self.held - before) * (FRAMING_SHARE + 1)
            if excess > MAX_EXCESS:
                raise Malformed("more framing than data")
            self._excess = excess if excess > 0 else 0  # noqa: FURB136 -- once for each event of a stream
        # The line of a size is not complete without a call, so a line that is complete here is the end of a chunk.
        self._flat = self._chunked and self._outside[0] and not self._excess and data[-2:] == b"\r\n"

    # --- what httptools calls ---

    def on_message_begin(self) -> None:
        """Another message begins; behind a complete one it is nothing that was asked for."""
        self._extra = self.complete

    def on_status(self, reason: bytes) -> None:
        """Take the *reason*, or a piece of it."""
        if reason != b"OK" and _CONTROL.search(reason):
            self._refuse("a control character in the status line")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header of the head; trailers are weighed as framing and dropped."""
        if self.headers is not None:
            return
        size = len(name) + len(value)
        self._count += size + 4
        if size > MAX_LINE or self._count > MAX_HEAD or len(self._found) >= MAX_HEADERS:
            self._refuse("the head is too long")
        name, value = name.lower(), value.strip(b" \t")
        if name in _FRAMING:
            self._frame(name, value)
        self._found.append((name, value))

    def _frame(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self._length = int(value)  # digits only, as httptools has checked
        elif name == b"content-encoding":
            self.coded = True
        elif self._chunked or value.lower() != b"chunked":
            self._refuse("a transfer coding that is not chunked")
        else:
            self._chunked = True

    def on_headers_complete(self) -> None:
        """The head is there: decide how the body ends."""
        machine = self._machine
        if machine is None:  # pragma: no cover -- it is what calls
            return
        self.status = machine.get_status_code()
        if self.status < 200:  # 0xx; 1xx never comes here
            self._refuse("no status code")
        self.headers = tuple(self._found)
        if self._bodiless:
            self._keep = machine.should_keep_alive()
            self._finish()
        elif self._chunked:
            self._keep = machine.should_keep_alive() and machine.get_http_version() == "1.1"
        else:
            self._keep = machine.should_keep_alive()
            self._left = self._length or 0
            self._until_close = self._length is None and self.status not in {204, 304}

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        if self.complete:  # a body where there is none
            self._extra = True
            return
        size = len(data)
        self.body.append(data)
        self.held += size
        self._left -= size

    def on_message_complete(self) -> None:
        """The message has ended by its own framing."""
        if self.headers is not None:
            self._finish()

    # --- body ---

    def _count_down(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            data, self._extra = data[: self._left], True
        self._keep_part(data)
        if self._left <= 0:
            self._finish()

    def _keep_part(self, data: bytes) -> None:
        self.body.append(data)
        self.held += len(data)

    def _finish(self) -> None:
        self._left = 0
        self.complete = True
        self.release()

    def _refuse(self, reason: str) -> None:
        self._reason = reason
        raise Malformed(reason)
