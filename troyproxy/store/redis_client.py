"""A connection to Redis, and the one narrow except around its use.

Errors of the library stop here. Their texts may quote the URL, so none is passed on: only the class is named.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from troyproxy.errors import ConfigError, StoreUnavailable

TICKS: Final = 5


def new_client(url: str, *, answer_s: float) -> Redis:
    """Return a client that is not connected. *answer_s*: how long an answer may take. Raises ConfigError, unquoted."""
    try:
        return Redis.from_url(
            url,
            protocol=2,
            socket_timeout=answer_s,
            socket_connect_timeout=answer_s,
            socket_keepalive=True,
            health_check_interval=2,
            retry=Retry(NoBackoff(), 0),  # who calls us backs off
        )
    except ValueError as exc:
        raise ConfigError("TROY_REDIS_URL is no Redis URL; allowed: redis://user:password@host:6379/0") from exc


@contextmanager
def redis_errors() -> Iterator[None]:
    """Whatever a server, a network or a timeout can do becomes StoreUnavailable."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as exc:
        raise StoreUnavailable(f"the shared state in Redis cannot be used ({type(exc).__name__})") from exc


@asynccontextmanager
async def patience(limit_s: float) -> AsyncIterator[None]:
    """Raise TimeoutError after *limit_s*. A stall of our own event loop hardly counts: it is no fault of the server's.

    The time is counted in ticks, and however late a tick comes, it is one.
    """
    async with asyncio.timeout(None) as clock:
        ticks = _Ticks(clock, limit_s / TICKS)
        try:
            yield
        finally:
            ticks.end()


class _Ticks:
    """Ends *clock* after so many ticks, each planned when the one before has come."""

    def __init__(self, clock: asyncio.Timeout, each_s: float) -> None:
        self._clock, self._each_s, self._left = clock, each_s, TICKS
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_later(each_s, self._tick)

    def _tick(self) -> None:
        self._left -= 1
        if self._left:
            self._next = self._loop.call_later(self._each_s, self._tick)
        else:
            self._clock.reschedule(self._loop.time())

    def end(self) -> None:
        self._next.cancel()
