"""`RedisAttempts` against a real server."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis as Client

from tests.services import Redis, redis
from troyproxy.accounting.finished import Finished
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.store.redis_attempts import KEEP_S, PER_ENTRY, READ, STREAM, RedisAttempts
from troyproxy.store.redis_door import shared_attempts

pytestmark = pytest.mark.anyio
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def running() -> Iterator[Redis]:
    with redis(password="hush-hush") as server:
        yield server


@pytest.fixture
async def client(running: Redis, anyio_backend: str) -> AsyncIterator[Client]:
    async with Client.from_url(running.url, protocol=2) as opened:
        await opened.flushall()
        yield opened


@pytest.fixture
async def pair(running: Redis, client: Client) -> AsyncIterator[tuple[RedisAttempts, RedisAttempts]]:
    one, other = RedisAttempts(running.url), RedisAttempts(running.url)
    await one.open()
    await other.open()
    yield one, other
    await one.close()
    await other.close()


def some(count: int = 1) -> list[Finished]:
    return [
        Finished("alpha", "m1", "A", float(next(NUMBERS)), ok=True, latency_ms=1.5, tokens=3, usd=0.25)
        for _ in range(count)
    ]


async def test_others_hear_what_one_tells_once_and_it_does_not_hear_itself(
    pair: tuple[RedisAttempts, RedisAttempts],
) -> None:
    one, other = pair
    mine = [*some(2), Finished("alpha", "m\ud800", "A", 1.0)]
    assert await one.exchange(mine) == []
    assert await one.exchange([]) == []
    heard = await other.exchange([])
    assert list(heard[:2]) == mine[:2]
    assert (heard[2].model, heard[2].ok, heard[2].latency_ms) == ("m?", None, None)
    assert await other.exchange([]) == []


async def test_many_attempts_go_in_several_batches(pair: tuple[RedisAttempts, RedisAttempts], client: Client) -> None:
    one, other = pair
    mine = some(2 * PER_ENTRY + 1)
    await one.exchange(mine)
    assert await client.xlen(STREAM) == 3
    assert await other.exchange([]) == mine


async def test_what_is_too_much_for_one_exchange_comes_with_the_next(
    pair: tuple[RedisAttempts, RedisAttempts],
) -> None:
    one, other = pair
    for _ in range(READ + 1):
        await one.exchange(some())
    assert [len(await other.exchange([])) for _ in range(3)] == [READ, 1, 0]


async def test_a_newcomer_hears_what_is_told_from_now_on(
    running: Redis, pair: tuple[RedisAttempts, RedisAttempts]
) -> None:
    one, _ = pair
    await one.exchange(some())
    late = RedisAttempts(running.url)
    await late.open()
    mine = some()
    await one.exchange(mine)
    assert await late.exchange([]) == mine
    await late.close()


async def test_an_outage_of_the_connection_loses_nothing_of_others(pair: tuple[RedisAttempts, RedisAttempts]) -> None:
    one, other = pair
    await other.close()
    mine = some()
    await one.exchange(mine)
    with pytest.raises(StoreUnavailable):
        await other.exchange([])
    await other.open()
    assert await other.exchange([]) == mine


@pytest.mark.parametrize(
    "entry",
    [
        {"from": "x", "v": "2", "told": "[]"},
        {"from": "x", "v": "1", "told": "{"},
        {"from": "x", "v": "1", "told": b"\xff"},
        {"from": "x", "v": "1", "told": '[{"provider": 1}]'},
        {"from": "x", "v": "1"},
        {"odd": "x"},
    ],
)
async def test_what_this_version_cannot_read_is_ignored(
    pair: tuple[RedisAttempts, RedisAttempts], client: Client, entry: dict[str, str]
) -> None:
    one, other = pair
    await client.xadd(STREAM, entry)  # type: ignore[arg-type]  # a mapping of texts
    mine = some()
    await one.exchange(mine)
    assert await other.exchange([]) == mine


async def test_the_stream_goes_by_itself(pair: tuple[RedisAttempts, RedisAttempts], client: Client) -> None:
    await pair[0].exchange(some())
    assert 0 < await client.ttl(STREAM) <= KEEP_S


async def test_a_server_that_is_gone_is_store_unavailable(running: Redis) -> None:
    nobody = RedisAttempts("redis://127.0.0.1:1/0")
    with pytest.raises(StoreUnavailable):
        await nobody.open()
    await nobody.close()


def test_the_door_opens_with_a_url_only() -> None:
    assert shared_attempts(None) is None
    assert isinstance(shared_attempts("redis://127.0.0.1:1/0"), RedisAttempts)
    with pytest.raises(ConfigError):
        shared_attempts("nonsense")


async def test_what_a_success_is_remembered_under_is_told_as_it_is(pair: tuple[RedisAttempts, RedisAttempts]) -> None:
    one, other = pair
    mine = Finished(
        "alpha", "m1", "A", 1.0, ok=True, remember=(("k1", "-", "auto@0.0", "(0.1,)"), ("k1", "s", "b", ""))
    )
    await one.exchange([mine])
    assert await other.exchange([]) == [mine]
