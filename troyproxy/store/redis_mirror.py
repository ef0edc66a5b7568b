"""`RedisMirror`: `ports.StateMirror` on one Redis.

One sorted set holds the records of all instances, each scored with the moment at which it runs out (unix seconds); one
channel carries the news. A set of facts that only grows and runs out needs no locks and no scripts: writing the same
twice is no matter, and nobody can overwrite another's longer lock with a shorter one.

    troyproxy:v1:state          the records; at most `BOUND`, and gone by itself some time after the last write
    troyproxy:v1:news:<db>      the channel; a database's number is in it, since Redis shares channels between databases
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from troyproxy.errors import StoreUnavailable
from troyproxy.ports import News
from troyproxy.resilience.events import CircuitOpened, Event, Locked
from troyproxy.store.redis_client import new_client, redis_errors
from troyproxy.store.redis_records import decode, decode_news, encode, encode_news

STATE: Final = "troyproxy:v1:state"
NEWS: Final = "troyproxy:v1:news"
BOUND: Final = 20_000
"""Records that are kept; those that end first go first."""
PER_MESSAGE: Final = 200
ANSWER_S: Final = 1.0
"""How long the server may take for one answer, and to be connected to."""
WAIT_S: Final = 5.0
"""How long one look for news lasts; nothing happens at its end."""


class RedisMirror:
    """One instance's way to the shared state. *keep_s* is the longest effect of an event, in seconds."""

    def __init__(self, url: str, *, keep_s: float) -> None:
        """Connect to nothing yet. Raises ConfigError, not quoting the URL."""
        self._url, self._keep_s = url, keep_s
        self._source = self._channel = ""
        self._client: Redis | None = None
        self._pubsub: PubSub | None = None
        self._mine: dict[Event, bytes] = {}
        self._there: set[bytes] = set()
        new_client(url, answer_s=ANSWER_S)

    async def open(self) -> None:
        """Connect and subscribe. Raises StoreUnavailable."""
        await self.close()
        self._client = new_client(self._url, answer_s=ANSWER_S)
        self._source = secrets.token_hex(8)  # here and not at the making: workers may be forks of one that was made
        database = self._client.connection_pool.connection_kwargs.get("db") or 0
        self._channel = f"{NEWS}:{database}"
        self._pubsub = self._client.pubsub()
        with redis_errors():
            async with asyncio.timeout(2 * ANSWER_S):
                await self._pubsub.subscribe(self._channel)
                while await self._pubsub.get_message(timeout=ANSWER_S) is None:
                    pass  # until the server has said that we are subscribed

    async def read(self, now: float) -> Sequence[Event]:
        """Return what is kept and has not run out. Raises StoreUnavailable."""
        client = self._opened()
        with redis_errors():
            async with asyncio.timeout(2 * ANSWER_S):
                found = await client.zrange(STATE, f"({now!r}", "+inf", byscore=True, offset=0, num=BOUND)
        records = [record for record in found if isinstance(record, bytes)]
        self._there = set(records)
        return [event for record in records if (event := decode(record)) is not None]

    async def push(self, kept: Sequence[Event], *, now: float, news: News | None = None) -> None:
        """Write what is new in *kept*, take away what is no longer in it, and publish. Raises StoreUnavailable."""
        client = self._opened()
        wanted = {event: record for event in kept if (record := self._mine.get(event) or encode(event)) is not None}
        added = {record: self._ends(event) for event, record in wanted.items() if record not in self._there}
        gone = [record for event, record in self._mine.items() if event not in wanted and self._ends(event) > now]
        messages = self._messages(list(added), news or News())
        async with client.pipeline(transaction=True) as batch:
            if gone:
                batch.zrem(STATE, *gone)
            if added:
                batch.zadd(STATE, added)
                batch.zremrangebyscore(STATE, "-inf", now)
                batch.zremrangebyrank(STATE, 0, -BOUND - 1)
                batch.pexpire(STATE, int(self._keep_s * 1000))
            for message in messages:
                batch.publish(self._channel, message)
            with redis_errors():
                async with asyncio.timeout(2 * ANSWER_S):
                    await batch.execute()
        self._mine = wanted
        self._there = (self._there | added.keys()).difference(gone)

    def _messages(self, added: Sequence[bytes], news: News) -> Iterator[bytes]:
        if news.revision is not None:
            yield encode_news(self._source, (), news.revision)
        records = [*added, *(record for event in news.events if (record := encode(event)) is not None)]
        for start in range(0, len(records), PER_MESSAGE):
            yield encode_news(self._source, records[start : start + PER_MESSAGE])

    def _ends(self, event: Event) -> float:
        return event.until if isinstance(event, Locked | CircuitOpened) else event.at + self._keep_s

    async def listen(self) -> News:
        """Wait for news. Raises StoreUnavailable."""
        if self._pubsub is None:
            raise StoreUnavailable("the shared state is not connected")
        while True:
            with redis_errors():
                message = await self._pubsub.get_message(ignore_subscribe_messages=True, timeout=WAIT_S)
            if message is None or message["type"] != "message":
                continue
            news = decode_news(message["data"], ours=self._source)
            if news is not None:
                # Who publishes has written first, so we need not write it again.
                self._there.update(record for event in news.events if (record := encode(event)) is not None)
                return news

    async def close(self) -> None:
        """Disconnect; what fails on the way out is of no interest."""
        pubsub, client, self._pubsub, self._client = self._pubsub, self._client, None, None
        for each in (pubsub, client):
            if each is not None:
                with suppress(RedisError, OSError):
                    await each.aclose()

    def _opened(self) -> Redis:
        if self._client is None:
            raise StoreUnavailable("the shared state is not connected")
        return self._client
