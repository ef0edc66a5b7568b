"""Fuzzes the response parser of the pooled transport, with heads, chunks and cuts put together from words.

    python -m pip install atheris
    python -m tests.fuzz_http -max_total_time=600

Options are libFuzzer's. A finding is an exception other than a refusal, an answer that depends on how its bytes were
cut, or one that is complete here and not to httptools. `tests/upstream/pooled/test_parser_properties.py` runs the same
checks briefly.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import httptools

from troyproxy.upstream.pooled.parser import Cut, ResponseParser
from troyproxy.upstream.pooled.prelude import Malformed

WORDS: Final = (
    *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 204 N\r\n", b"HTTP/1.1 503 \r\n", b"HTTP/1.1 200\r\n"),
    *(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 E\r\nlink: x\r\n\r\n", b"HTTP/1.1 101 S\r\n\r\n"),
    *(b"HTTP/2 200\r\n", b"RTSP/1.1 200 OK\r\n", b"HTTP/1.1 099 X\r\n", b"HTTP/1.1 2x0 X\r\n", b"HTTP/1."),
    *(b"content-length: 5\r\n", b"content-length: 0\r\n", b"Content-Length:7\r\n", b"content-length: 5, 5\r\n"),
    *(b"content-length: -1\r\n", b"content-length: 0x5\r\n", b"content-length: 99999999999999999999\r\n"),
    *(b"transfer-encoding: chunked\r\n", b"transfer-encoding: gzip, chunked\r\n", b"transfer-encoding: xchunked\r\n"),
    *(b"Transfer-Encoding:\tChunked \r\n", b"transfer-encoding: identity\r\n", b"content-encoding: gzip\r\n"),
    *(b"connection: close\r\n", b"connection: keep-alive\r\n", b"x: y\r\n", b"x:\r\n", b"x : y\r\n", b": y\r\n"),
    *(b" folded\r\n", b"a\0b: c\r\n", b"a: b\0c\r\n", b"a: b\rc\r\n", b"a: b\nc: d\r\n", b"no colon\r\n"),
    *(b"\r\n", b"\n", b"\r", b"\0", b"\r\n\r\n", b"hello", b"x", b"0\r\n\r\n", b"0\r\n", b"5\r\nhello\r\n"),
    *(b"5;a=b\r\nhello\r\n", b'5;a="b"\r\nhello\r\n', b"5\nhello\n", b"5 \r\nhello\r\n", b"05\r\nhello\r\n", b"-5\r\n"),
    *(
        b"fffffffffffffffff\r\n",
        b"5\r\nhelloo\r\n",
        b"trailer: x\r\n\r\n",
        b"0\r\ncontent-length: 5\r\n\r\n",
        b";" * 99,
    ),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of some bytes, and then of the end of the connection."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...] | None
    body: bytes
    complete: bool
    refused: bool


def run(pieces: list[bytes], *, bodiless: bool = False, short: bool = False) -> Seen:
    """Feed *pieces* until one is refused, then say that no more will come.

    *short*: whole chunks are asked for first, as for somebody who hears a stream.
    """
    parser, refused, body = ResponseParser(bodiless=bodiless), False, b""
    try:
        for piece in pieces:
            if short and (chunk := parser.only_chunk(piece)):
                body += chunk
            else:
                parser.feed(piece)
                body += parser.take()
        parser.end()
    except Malformed:
        refused = True
    except Cut:
        assert not parser.complete
    assert parser.complete or not parser.reusable
    return Seen(parser.status, parser.headers, body + parser.take(), parser.complete, refused)


def pieces_of(data: bytes, places: bytes) -> list[bytes]:
    """Return *data* cut at *places*, which are 256ths of it; no piece is empty."""
    at = sorted({len(data) * place // 256 for place in places} - {0})
    return [piece for start, end in zip([0, *at], [*at, len(data)], strict=True) if (piece := data[start:end])]


def bytes_of(data: bytes) -> bytes:
    """Return the bytes that *data* spells: words by number, and runs of its own bytes."""
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        number = data[at]
        at += 1
        if number >= 0xF0:
            length = number & 0x0F
            parts.append(data[at : at + length])
            at += length
        else:
            parts.append(WORDS[number % len(WORDS)])
    return b"".join(parts)


def check(data: bytes) -> Seen:
    """Check one answer; return what was seen of it in one piece."""
    places, text = data[1:9], bytes_of(data[9:])
    bodiless = bool(data) and data[0] % 8 == 7
    seen = run([text], bodiless=bodiless)
    cut = run(pieces_of(text, places), bodiless=bodiless)
    assert run(pieces_of(text, places), bodiless=bodiless, short=True) == cut
    assert (seen.status, seen.headers, seen.complete) == (cut.status, cut.headers, cut.complete)
    assert seen.body == cut.body or seen.refused
    if seen.complete and not bodiless:
        _check_peer(text)
    return seen


class _Peer:
    """What httptools makes of the same bytes."""

    def __init__(self) -> None:
        self.heads = 0

    def on_headers_complete(self) -> None:
        """Count heads."""
        self.heads += 1


def _check_peer(text: bytes) -> None:
    peer = _Peer()
    with suppress(httptools.HttpParserError):  # behind the end: a complete answer has a head all the same
        httptools.HttpResponseParser(peer).feed_data(text)
    assert peer.heads


def main() -> None:
    """Fuzz until libFuzzer's options say stop."""
    atheris = importlib.import_module("atheris")
    atheris.instrument_all()
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
