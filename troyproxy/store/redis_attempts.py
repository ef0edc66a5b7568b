"""`RedisAttempts`: `ports.SharedAttempts` on one Redis.

One stream holds the batches of all instances; each reads on from where it was, so a short outage loses nothing that
others told meanwhile. A reader ignores what it does not understand: another version, garbage, numbers that cannot be.

    troyproxy:v1:attempts    entries {from: instance, v: version, told: JSON}; about `ENTRIES`, gone after an hour
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from troyproxy.accounting.finished import Finished
from troyproxy.errors import StoreUnavailable
from troyproxy.store.encoding import plain
from troyproxy.store.redis_client import new_client, redis_errors

STREAM: Final = "troyproxy:v1:attempts"
VERSION: Final = b"1"
ENTRIES: Final = 1_000
"""Batches that are kept; the oldest go first."""
PER_ENTRY: Final = 500
READ: Final = 200
"""Batches that one exchange reads."""
KEEP_S: Final = 3_600
ANSWER_S: Final = 1.0

Entry = dict[bytes | bytearray | memoryview | str | int | float, bytes | bytearray | memoryview | str | int | float]
_BATCH: Final = msgspec.json.Decoder(list[Finished])


class RedisAttempts:
    """One instance's way to what all measure."""

    def __init__(self, url: str) -> None:
        """Connect to nothing yet. Raises ConfigError, not quoting the URL."""
        self._url = url
        self._source = b""
        self._last: bytes | str | None = None
        self._client: Redis | None = None
        new_client(url, answer_s=ANSWER_S)

    async def open(self) -> None:
        """Connect; the first time find the place from which to read on. Raises StoreUnavailable."""
        await self.close()
        self._client = client = new_client(self._url, answer_s=ANSWER_S)
        self._source = self._source or secrets.token_hex(8).encode()  # not at the making: workers may be forks
        with redis_errors():
            async with asyncio.timeout(ANSWER_S):
                newest = await client.xrevrange(STREAM, count=1)
        if self._last is None:
            self._last = newest[0][0] if newest else "0-0"

    async def exchange(self, mine: Sequence[Finished]) -> Sequence[Finished]:
        """Write *mine* and read what is new, in one trip. Raises StoreUnavailable."""
        client = self._client
        if client is None:
            raise StoreUnavailable("the shared measurements are not connected")
        with redis_errors():
            async with asyncio.timeout(2 * ANSWER_S), client.pipeline(transaction=False) as batch:
                batch.xread({STREAM: self._last or "0-0"}, count=READ)
                for at in range(0, len(mine), PER_ENTRY):
                    entry: Entry = {"from": self._source, "v": VERSION, "told": _encoded(mine[at : at + PER_ENTRY])}
                    batch.xadd(STREAM, entry, maxlen=ENTRIES, approximate=True)
                batch.expire(STREAM, KEEP_S)
                found = (await batch.execute())[0]
        return list(self._heard(found[0][1] if found else ()))

    def _heard(self, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> Iterator[Finished]:
        for name, entry in entries:
            self._last = name
            if entry.get(b"from") != self._source and entry.get(b"v") == VERSION:
                yield from _decoded(entry.get(b"told", b""))

    async def close(self) -> None:
        """Disconnect; what fails on the way out is of no interest."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(RedisError, OSError):
                await client.aclose()


def _encoded(batch: Sequence[Finished]) -> bytes:
    return msgspec.json.encode(plain(batch))


def _decoded(told: bytes) -> Sequence[Finished]:
    try:
        return _BATCH.decode(told)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
