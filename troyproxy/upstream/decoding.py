"""Undoes content codings that an upstream applied although it was asked for identity.

Decoding is incremental (an event that has arrived can be read at once) and every piece is bounded (`wire.coding`). How
much is taken in all is the caller's cap. An unknown coding is left alone, header and body alike: they agree in every
case. An error answer that is not in the coding it claims from its first bytes on (a page behind the header of a
compressing proxy) passes as it is: its words are worth more than its form.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from troyproxy.ports import Headers, UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.wire.coding import CODECS, ERRORS, Codec

MAX_CODINGS: Final = 3
MAX_DOUBT: Final = 1 << 16
"""Bytes that are kept until the first of them is decoded."""


def codecs_of(headers: Headers) -> list[Codec]:
    """Return the decompressors that *headers* ask for, outermost first; none when one is unknown or they are many."""
    values = b",".join(value for name, value in headers if name == b"content-encoding")
    names = [name for name in (part.strip().lower() for part in values.split(b",")) if name not in {b"", b"identity"}]
    if len(names) > MAX_CODINGS or any(name not in CODECS for name in names):
        return []
    return [CODECS[name]() for name in reversed(names)]


def decoded(status: int, headers: Headers, source: AsyncIterator[bytes]) -> tuple[Headers, AsyncIterator[bytes]]:
    """Return headers and body that agree; the body is *source* itself when there is nothing to undo."""
    codecs = codecs_of(headers)
    if not codecs:
        return headers, source
    kept = tuple((n, v) for n, v in headers if n not in {b"content-encoding", b"content-length"})
    return kept, DecodedBody(source, codecs, doubt=status >= 400)


class DecodedBody:
    """An iterator over decoded bytes; damaged or cut short behind a good start, it raises UpstreamFailed (PROTOCOL)."""

    def __init__(self, source: AsyncIterator[bytes], codecs: list[Codec], *, doubt: bool) -> None:
        self._source = source
        self._codecs = codecs
        self._pieces: Iterator[bytes] = iter(())
        self._seen = False
        self._doubtful: bytes | None = b"" if doubt else None
        """What came so far, while nothing of it was decoded; None once it is known what it is."""

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
            if self._doubtful is not None:
                self._doubtful = self._doubtful + chunk if len(self._doubtful) < MAX_DOUBT else None
            self._pieces = self._through(self._codecs, chunk)
        return piece

    def _next_piece(self) -> bytes | None:
        try:
            piece = next(self._pieces, None)
        except ERRORS as exc:
            if self._doubtful is None:
                raise UpstreamFailed(Fault.PROTOCOL, f"compressed body is damaged: {exc}", body_sent=True) from exc
            piece, self._codecs = self._doubtful, []
        if piece is not None:
            self._doubtful = None
        return piece

    def _through(self, codecs: list[Codec], data: bytes) -> Iterator[bytes]:
        if not codecs:
            yield data
            return
        for piece in codecs[0].feed(data):
            yield from self._through(codecs[1:], piece)

    def _check_end(self) -> None:
        if self._seen and not all(codec.finished for codec in self._codecs):
            raise UpstreamFailed(Fault.PROTOCOL, "compressed body ended early", body_sent=True)
