"""An upstream that costs next to nothing: bare protocols, and answers made beforehand. Its own process:

    python -m tests.bench.upstream PORT

What it answers is in the model's name: see `shapes.py`. ``live-N-0`` is N events in one write, as a proxy in between
would have gathered them; ``live-N-P`` is an event every P ms.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable
from typing import Final, cast

import uvloop

from tests.bench.shapes import DONE, FAULTS, FIRST, LAST, SIZES, USAGE, completion, moment
from tests.bench.ticker import Ticker

_MODEL: Final = re.compile(rb'"model": ?"(?:[^"]*/)?([a-z0-9]+)(?:-(\w+))?(?:-(\d+))?"')
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_STREAM: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_NEAR: Final = 400
"""The model is within so many bytes of the beginning of a body; what was added to it, of the end."""


def answer(status: int, body: bytes) -> bytes:
    """Return a whole answer."""
    head = b"HTTP/1.1 %d Told\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
    return head + body


def chunk(data: bytes) -> bytes:
    """Return one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


WHOLE: Final = {model.encode(): answer(200, completion(size)) for model, size in SIZES.items()}
FAILED: Final = {
    name.encode(): answer(status, b'{"error":{"message":"no luck","type":"bench","code":null}}')
    for name, status in FAULTS.items()
    if status
}


class Live:
    """One stream under way. *gone* says whether its connection is closed; *end* is what comes after its moments."""

    __slots__ = ("_at", "_end", "_gone", "_number", "_write")

    def __init__(self, write: Callable[[bytes], None], gone: Callable[[], bool], number: int, end: bytes) -> None:
        self._write, self._gone, self._number, self._end, self._at = write, gone, number, end, 0

    def step(self) -> bool:
        """Send the next moment, or the end."""
        if self._gone():
            return False
        if self._at == self._number:
            self._write(self._end)
            return False
        self._write(chunk(moment(self._at, time.monotonic())))
        self._at += 1
        return True


class Upstream(asyncio.Protocol):
    """One connection. Requests come one after the other and have a content-length."""

    def __init__(self, tickers: dict[int, Ticker]) -> None:
        self._tickers = tickers
        self._seen = bytearray()
        self._head = self._needed = 0
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if not self._needed:
            self._head = self._seen.find(b"\r\n\r\n") + 4
            if self._head < 4:
                return
            length = _LENGTH.search(self._seen, 0, self._head)
            self._needed = self._head + (int(length[1]) if length else 0)
        if len(self._seen) >= self._needed:
            first, last = bytes(self._seen[self._head : self._head + _NEAR]), bytes(self._seen[-_NEAR:])
            self._seen.clear()
            self._needed = 0
            self._answer(first, last)

    def _answer(self, first: bytes, last: bytes) -> None:
        asked = _MODEL.search(first)
        if asked is None:
            self._transport.write(answer(400, b"{}"))
        elif asked[1] == b"live":
            usage = b'"include_usage"' in first or b'"include_usage"' in last
            self._live(int(asked[2]), int(asked[3]), b"".join((LAST, USAGE if usage else b"", DONE)))
        elif asked[1] == b"fault":
            self._fail(asked[2])
        else:
            self._transport.write(WHOLE[asked[1]])

    def _fail(self, fault: bytes) -> None:
        if fault in FAILED:
            self._transport.write(FAILED[fault])
        else:
            self._transport.abort()

    def _live(self, number: int, period_ms: int, last: bytes) -> None:
        end = chunk(last) + b"0\r\n\r\n"
        if not period_ms:
            now = time.monotonic()
            events = b"".join(chunk(moment(at, now)) for at in range(number))
            self._transport.write(_STREAM + chunk(FIRST) + events + end)
            return
        if period_ms not in self._tickers:
            self._tickers[period_ms] = Ticker(asyncio.get_running_loop(), period_ms / 1e3)
        self._transport.write(_STREAM + chunk(FIRST))
        self._tickers[period_ms].join(Live(self._transport.write, self._transport.is_closing, number, end))


async def _serve(port: int) -> None:
    tickers: dict[int, Ticker] = {}
    server = await asyncio.get_running_loop().create_server(lambda: Upstream(tickers), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
