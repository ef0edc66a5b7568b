"""A load generator of bare protocols: cheap enough that it measures the servers and not itself."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from typing import Final, cast

from tests.bench.servers import Target

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)
PATIENCE_S: Final = 30.0


@dataclass(slots=True)
class Times:
    """How long each request took, in seconds, and the whole run."""

    seconds: float
    times_s: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.times_s)

    def at(self, share: float) -> float:
        """Return the time that this share of the requests did not exceed."""
        return share_of(self.times_s, share)


def share_of(values: list[float], share: float) -> float:
    """Return the value that a *share* of *values* does not exceed; 0 of none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def request_to(target: Target, body: bytes) -> bytes:
    """Return one request as it goes over the wire."""
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{target.port}\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {target.key}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Client(asyncio.Protocol):
    """One connection: it sends the next request when an answer is complete, until the time is over."""

    def __init__(self, request: bytes, times: Times, until: float) -> None:
        self._request, self._times, self._until = request, times, until
        self._seen = bytearray()
        self._started = 0.0
        self._transport: asyncio.WriteTransport
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with RuntimeError at an answer that is no 200."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or RuntimeError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if not self._complete():
            return
        if not self._seen.startswith(b"HTTP/1.1 200 "):
            self._end(RuntimeError(f"the server answered: {self._seen[:500].decode('latin-1')}"))
            return
        now = time.perf_counter()
        self._times.times_s.append(now - self._started)
        self._seen.clear()
        if now < self._until:
            self._send()
        else:
            self._end(None)

    def _send(self) -> None:
        self._started = time.perf_counter()
        self._transport.write(self._request)

    def _complete(self) -> bool:
        """Whether the whole answer is here. With one request at a time, a last chunk can only stand at the end."""
        head = self._seen.find(b"\r\n\r\n")
        if head < 0:
            return False
        length = _LENGTH.search(self._seen, 0, head + 2)
        if length is None:
            return self._seen.endswith(b"\r\n0\r\n\r\n")
        return len(self._seen) >= head + 4 + int(length[1])

    def _end(self, error: Exception | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)
        self._transport.close()


async def own_client(target: Target, body: bytes, *, clients: int, seconds: float) -> Times:
    """Return what *clients* connections got out of *target* within *seconds*.

    Raises RuntimeError if it fails, TimeoutError when an answer does not come.
    """
    times, request = Times(seconds), request_to(target, body)
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    opened = [
        await loop.create_connection(lambda: Client(request, times, started + seconds), "127.0.0.1", target.port)
        for _ in range(clients)
    ]
    async with asyncio.timeout(seconds + PATIENCE_S):
        await asyncio.gather(*(client.done for _, client in opened))
    times.seconds = time.perf_counter() - started
    return times
