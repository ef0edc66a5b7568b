"""Undoes content codings that an upstream applied although it was asked for identity.

Decoding is incremental (an event that has arrived can be read at once) and every piece is bounded, so a bomb costs its
reader no more than it takes. How much is taken in all is the caller's cap. An unknown coding is left alone, header and
body alike: they agree in every case.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, Protocol

import brotli
import zstandard

from troyproxy.ports import Headers, UpstreamFailed
from troyproxy.resilience.faults import Fault

MAX_PIECE: Final = 1 << 18
"""Bytes of one decoded piece (zstd: up to 2 MiB)."""
ZSTD_SLICE: Final = 64
"""Input bytes fed at once: a zstd block makes at most 128 KiB of 4 bytes, and its API has no output limit."""
ZSTD_WINDOW: Final = 1 << 23
"""What RFC 9659 allows on the web."""
MAX_CODINGS: Final = 3


class Codec(Protocol):
    """One decompressor, fed in pieces."""

    @property
    def finished(self) -> bool:
        """Whether the compressed stream has ended properly."""
        ...

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what *data* completes; raises an error of its library (`ERRORS`)."""
        ...


class Deflate:
    """gzip (several members too), and deflate in both of its meanings: zlib-wrapped and raw."""

    def __init__(self, wbits: int) -> None:
        self.finished = False
        self._wbits = wbits
        self._held = b""
        self._decided = wbits != zlib.MAX_WBITS
        self._machine = zlib.decompressobj(wbits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decoded pieces of at most `MAX_PIECE`."""
        data = self._decide(data)
        piece = b""
        while data or (len(piece) == MAX_PIECE and not self._machine.eof):
            if self._machine.eof:
                self._machine = zlib.decompressobj(self._wbits)
            piece = self._machine.decompress(data, MAX_PIECE)
            data = self._machine.unused_data if self._machine.eof else self._machine.unconsumed_tail
            self.finished = self._machine.eof
            if piece:
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
                    self._machine = self._new()
                piece = self._machine.decompress(rest)
                self.finished = self._machine.eof
                rest = self._machine.unused_data if self.finished else b""
                if piece:
                    yield piece


CODECS: Final[dict[bytes, Callable[[], Codec]]] = {
    b"gzip": lambda: Deflate(zlib.MAX_WBITS | 16),
    b"x-gzip": lambda: Deflate(zlib.MAX_WBITS | 16),
    b"deflate": lambda: Deflate(zlib.MAX_WBITS),
    b"br": Brotli,
    b"zstd": Zstd,
}
ERRORS: Final = (zlib.error, brotli.error, zstandard.ZstdError)


def codecs_of(headers: Headers) -> list[Codec]:
    """Return the decompressors that *headers* ask for, outermost first; none when one is unknown or they are many."""
    values = b",".join(value for name, value in headers if name == b"content-encoding")
    names = [name for name in (part.strip().lower() for part in values.split(b",")) if name not in {b"", b"identity"}]
    if len(names) > MAX_CODINGS or any(name not in CODECS for name in names):
        return []
    return [CODECS[name]() for name in reversed(names)]


def decoded(headers: Headers, source: AsyncIterator[bytes]) -> tuple[Headers, AsyncIterator[bytes]]:
    """Return headers and body that agree; the body is *source* itself when there is nothing to undo."""
    codecs = codecs_of(headers)
    if not codecs:
        return headers, source
    kept = tuple((n, v) for n, v in headers if n not in {b"content-encoding", b"content-length"})
    return kept, DecodedBody(source, codecs)


class DecodedBody:
    """An iterator over decoded bytes; damaged or cut short, it raises UpstreamFailed (PROTOCOL)."""

    def __init__(self, source: AsyncIterator[bytes], codecs: list[Codec]) -> None:
        self._source = source
        self._codecs = codecs
        self._pieces: Iterator[bytes] = iter(())
        self._seen = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while (piece := self._next_piece()) is None:
            try:
                chunk = await anext(self._source)
            except StopAsyncIteration:
                self._check_end()
                raise
            self._seen = True
            self._pieces = self._through(self._codecs, chunk)
        return piece

    def _next_piece(self) -> bytes | None:
        try:
            return next(self._pieces, None)
        except ERRORS as exc:
            raise UpstreamFailed(Fault.PROTOCOL, f"compressed body is damaged: {exc}", body_sent=True) from exc

    def _through(self, codecs: list[Codec], data: bytes) -> Iterator[bytes]:
        if not codecs:
            yield data
            return
        for piece in codecs[0].feed(data):
            yield from self._through(codecs[1:], piece)

    def _check_end(self) -> None:
        if self._seen and not all(codec.finished for codec in self._codecs):
            raise UpstreamFailed(Fault.PROTOCOL, "compressed body ended early", body_sent=True)
