"""Undoes content codings piece by piece: gzip, deflate, br, zstd. Every piece is bounded, so a bomb costs its reader no
more than it takes. How much is taken in all is the caller's cap. Pure: no reading, no headers, no errors of our own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import brotli
import zstandard

MAX_PIECE: Final = 1 << 18
"""Bytes of one decoded piece (zstd: up to 2 MiB)."""
ZSTD_SLICE: Final = 64
"""Input bytes fed at once: a zstd block makes at most 128 KiB of 4 bytes, and its API has no output limit."""
ZSTD_WINDOW: Final = 1 << 23
"""What RFC 9659 allows on the web."""
DEFLATE_SLICE: Final = 1 << 16
"""Input bytes fed at once: what a machine leaves over is copied each time, and a slice bounds that."""
FREE_MEMBERS: Final = 1000
"""Members (gzip) or frames (zstd) of one body, however short; a server may well send one for each event."""
MEMBER_BYTES: Final = 64
"""Decoded bytes that each further one must stand for. A member costs a machine, and an empty one 20 bytes to send."""


class Codec(Protocol):
    """One decompressor, fed in pieces."""

    @property
    def finished(self) -> bool:
        """Whether the compressed stream has ended properly."""
        ...

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what *data* completes; raises an error of its library (`ERRORS`)."""
        ...


class Members:
    """Counts the members of one body."""

    def __init__(self) -> None:
        self._count = self._bytes = 0

    def took(self, piece: bytes) -> None:
        """Note what was decoded."""
        self._bytes += len(piece)

    def next(self) -> bool:
        """Whether one more member may begin."""
        self._count += 1
        return self._count <= FREE_MEMBERS + self._bytes // MEMBER_BYTES


class Deflate:
    """gzip (several members too), and deflate in both of its meanings: zlib-wrapped and raw."""

    def __init__(self, wbits: int) -> None:
        self.finished = False
        self._wbits = wbits
        self._held = b""
        self._decided = wbits != zlib.MAX_WBITS
        self._members = Members()
        self._machine = zlib.decompressobj(wbits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decoded pieces of at most `MAX_PIECE`."""
        data = self._decide(data)
        for start in range(0, len(data), DEFLATE_SLICE):
            yield from self._slice(data[start : start + DEFLATE_SLICE])

    def _slice(self, data: bytes) -> Iterator[bytes]:
        piece = b""
        while data or (len(piece) == MAX_PIECE and not self._machine.eof):
            if self._machine.eof:
                if not self._members.next():
                    raise zlib.error("too many members")
                self._machine = zlib.decompressobj(self._wbits)
            piece = self._machine.decompress(data, MAX_PIECE)
            data = self._machine.unused_data if self._machine.eof else self._machine.unconsumed_tail
            self.finished = self._machine.eof
            if piece:
                self._members.took(piece)
                yield piece

    def _decide(self, data: bytes) -> bytes:
        """Hold the first byte of "deflate" back until two show whether a zlib header stands there (RFC 1950)."""
        if self._decided:
            return data
        data = self._held + data
        if len(data) < 2:
            self._held = data
            return b""
        self._decided = True
        if data[0] & 0x0F != zlib.DEFLATED or int.from_bytes(data[:2], "big") % 31:
            self._wbits = -zlib.MAX_WBITS
            self._machine = zlib.decompressobj(self._wbits)
        return data


class Brotli:
    """br."""

    def __init__(self) -> None:
        self._machine = brotli.Decompressor()

    @property
    def finished(self) -> bool:
        return bool(self._machine.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decoded pieces of about `MAX_PIECE`."""
        piece = self._machine.process(data, output_buffer_limit=MAX_PIECE)
        while piece:
            yield piece
            piece = self._machine.process(b"", output_buffer_limit=MAX_PIECE) if len(piece) >= MAX_PIECE else b""


class Zstd:
    """zstd, several frames too."""

    def __init__(self) -> None:
        self.finished = False
        self._members = Members()
        self._machine = self._new()

    @staticmethod
    def _new() -> zstandard.ZstdDecompressionObj:
        return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decoded pieces, a slice of input at a time."""
        for start in range(0, len(data), ZSTD_SLICE):
            rest = data[start : start + ZSTD_SLICE]
            while rest:
                if self._machine.eof:
                    if not self._members.next():
                        raise zstandard.ZstdError("too many frames")
                    self._machine = self._new()
                piece = self._machine.decompress(rest)
                self.finished = self._machine.eof
                rest = self._machine.unused_data if self.finished else b""
                if piece:
                    self._members.took(piece)
                    yield piece


CODECS: Final[dict[bytes, Callable[[], Codec]]] = {
    b"gzip": lambda: Deflate(zlib.MAX_WBITS | 16),
    b"x-gzip": lambda: Deflate(zlib.MAX_WBITS | 16),
    b"deflate": lambda: Deflate(zlib.MAX_WBITS),
    b"br": Brotli,
    b"zstd": Zstd,
}
ERRORS: Final = (zlib.error, brotli.error, zstandard.ZstdError)
