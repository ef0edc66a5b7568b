"""A load generator of raw sockets: cheap enough that it measures the servers and not itself."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from tests.bench.servers import Target

CONNECTIONS = 8


@dataclass(slots=True)
class Load:
    """What one run saw."""

    seconds: float
    times_s: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return len(self.times_s) / self.seconds


def _request(target: Target, *, stream: bool) -> bytes:
    body = b'{"model":"bench/fast","messages":[{"role":"user","content":"hello"}],"stream":%s}' % (
        b"true" if stream else b"false"
    )
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{target.port}\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {target.key}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _read_answer(reader: asyncio.StreamReader) -> None:
    """Read one answer to its end. Raises RuntimeError unless it is a 200."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"the server answered: {head.decode('latin-1')}")
    if b"transfer-encoding: chunked" not in head:
        await reader.readexactly(int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]))
        return
    size = -1
    while size:
        size = int(await reader.readuntil(b"\r\n"), 16)
        await reader.readexactly(size + 2)


async def _worker(target: Target, request: bytes, load: Load, until: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    try:
        while (started := time.perf_counter()) < until:
            writer.write(request)
            await _read_answer(reader)
            load.times_s.append(time.perf_counter() - started)
    finally:
        writer.close()


async def measure(target: Target, *, stream: bool, seconds: float) -> Load:
    """Return what `CONNECTIONS` connections got out of *target* within *seconds*."""
    load = Load(seconds)
    until = time.perf_counter() + seconds
    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(_worker(target, _request(target, stream=stream), load, until))
    return load
