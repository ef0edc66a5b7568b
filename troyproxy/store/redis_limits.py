"""`RedisLimits`: `ports.SharedLimits` on one Redis. Each order is one Lua script on one hash, so it is exact.

    troyproxy:v1:limits:<digest of the key's id>    at, requests, tokens, day, day_usd, month, month_usd

The arithmetic is that of ``accounting/limits.py``. Time is the server's: instances need not agree on it to share a
bucket; days and months are the caller's. A hash goes by itself once its buckets are full again and its month is over.
Scripts are loaded when the connection is opened, and again when a server has lost them.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError

from troyproxy.accounting.limits import Limit, next_month
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Admission, Correction, Counted
from troyproxy.store.redis_client import new_client, patience, redis_errors

PREFIX: Final = "troyproxy:v1:limits:"
ANSWER_S: Final = 0.1
"""How long a trip may take: requests wait for it."""
OPEN_S: Final = 1.0
SERVERS: Final = -1.0
"""Instead of a time: the server's own."""
NONE: Final = -1.0
FULL: Final = 1e300

_BEGIN: Final = """
local function num(i) return tonumber(ARGV[i]) end
local now = num(1)
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1000000
end
local kept = redis.call('HMGET', KEYS[1], 'at', 'requests', 'tokens', 'day', 'day_usd', 'month', 'month_usd')
local gone = math.max(0, now - tonumber(kept[1] or now))
local function level(stored, limit, mine)
  if limit < 0 then return 1e300 end
  return math.min(limit, tonumber(stored or 1e300) + gone * limit / 60, mine)
end
local function spent(window, stored, given, mine)
  return math.max(mine, window == given and tonumber(stored) or 0)
end
local limit_requests, limit_tokens = num(2), num(3)
local requests = level(kept[2], limit_requests, num(4))
local tokens = level(kept[3], limit_tokens, num(5))
local day_usd = spent(kept[4], kept[5], ARGV[6], num(7))
local month_usd = spent(kept[6], kept[7], ARGV[8], num(9))
local refused = ''
"""
_ADMIT: Final = """
local wanted, limit_day, limit_month = num(11), num(12), num(13)
local needed = limit_tokens < 0 and wanted or math.min(wanted, limit_tokens)
if limit_month >= 0 and month_usd >= limit_month then refused = 'month'
elseif limit_day >= 0 and day_usd >= limit_day then refused = 'day'
elseif requests + 1e-6 < 1 then refused = 'requests'
elseif tokens + 1e-6 < needed then refused = 'tokens'
else
  requests = requests - 1
  tokens = tokens - wanted
end
"""
_CORRECT: Final = """
tokens = limit_tokens < 0 and 1e300 or math.min(limit_tokens, tokens + num(11))
day_usd = day_usd + num(12)
month_usd = month_usd + num(13)
"""
_END: Final = """
local function text(n) return string.format('%.17g', n) end
local function until_full(limit, n) return limit < 0 and 0 or (limit - n) * 60 / limit end
redis.call('HSET', KEYS[1], 'at', text(now), 'requests', text(requests), 'tokens', text(tokens),
  'day', ARGV[6], 'day_usd', text(day_usd), 'month', ARGV[8], 'month_usd', text(month_usd))
local keep = math.max(num(10), until_full(limit_requests, requests), until_full(limit_tokens, tokens))
redis.call('PEXPIRE', KEYS[1], math.ceil(keep * 1000) + 1000)
return {refused, text(requests), text(tokens), text(day_usd), text(month_usd)}
"""
SCRIPTS: Final = {Admission: _BEGIN + _ADMIT + _END, Correction: _BEGIN + _CORRECT + _END}


class RedisLimits:
    """One instance's way to the accounts that all share."""

    def __init__(self, url: str, *, answer_s: float = ANSWER_S, servers_time: bool = True) -> None:
        """Connect to nothing yet. Without *servers_time* the time is that of the orders. Raises ConfigError."""
        self._url, self._answer_s, self._servers_time = url, answer_s, servers_time
        self._client: Redis | None = None
        self._digests: dict[type[Admission | Correction], str] = {}
        new_client(url, answer_s=answer_s)

    async def open(self) -> None:
        """Connect, and load the scripts. Raises StoreUnavailable."""
        await self.close()
        self._client = client = new_client(self._url, answer_s=OPEN_S)
        with redis_errors():
            async with asyncio.timeout(OPEN_S):
                await self._load(client)

    async def carry(self, orders: Sequence[Admission | Correction]) -> Sequence[Counted]:
        """Carry out *orders* in one trip; without any, see that the server is there. Raises StoreUnavailable."""
        client = self._client
        if client is None:
            raise StoreUnavailable("the shared limits are not connected")
        with redis_errors():
            async with patience(self._answer_s):
                try:
                    replies = await self._trip(client, orders)
                except NoScriptError:  # it was started anew, and has done nothing of this
                    await self._load(client)
                    replies = await self._trip(client, orders)
        return [_counted(order, reply) for order, reply in zip(orders, replies, strict=False)]

    async def _load(self, client: Redis) -> None:
        for kind, script in SCRIPTS.items():
            self._digests[kind] = str(await client.script_load(script))

    async def _trip(self, client: Redis, orders: Sequence[Admission | Correction]) -> list[Sequence[bytes]]:
        async with client.pipeline(transaction=False) as batch:
            if not orders:
                batch.ping()
            for order in orders:
                batch.evalsha(self._digests[type(order)], 1, _name(order.key_id), *self._arguments(order))
            return list(await batch.execute())

    def _arguments(self, order: Admission | Correction) -> list[str]:
        limits, mine = order.limits, order.mine
        keep_s = next_month(mine.at) - mine.at if limits.budgeted else 0.0
        rates = (_limit(limits.requests), _limit(limits.tokens), min(mine.requests, FULL), min(mine.tokens, FULL))
        spent = (mine.day, mine.day_usd, mine.month, mine.month_usd)
        if isinstance(order, Admission):
            own = (order.tokens, _limit(limits.day_usd), _limit(limits.month_usd))
        else:
            own = (order.tokens, order.day_usd, order.month_usd)
        given = (SERVERS if self._servers_time else mine.at, *rates, *spent, keep_s, *own)
        return [each if isinstance(each, str) else repr(float(each)) for each in given]

    async def close(self) -> None:
        """Disconnect; what fails on the way out is of no interest."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(RedisError, OSError):
                await client.aclose()


def _name(key_id: str) -> str:
    return PREFIX + hashlib.sha256(key_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _limit(limit: float | None) -> float:
    return NONE if limit is None else limit


def _counted(order: Admission | Correction, reply: Sequence[bytes]) -> Counted:
    refused = reply[0].decode()
    requests, tokens, day_usd, month_usd = (float(each) for each in reply[1:])
    account = replace(
        order.mine,
        requests=math.inf if order.limits.requests is None else requests,
        tokens=math.inf if order.limits.tokens is None else tokens,
        day_usd=day_usd,
        month_usd=month_usd,
    )
    return Counted(account, Limit(refused) if refused else None)
