"""`RedisMirror` against a real server: two instances side by side, and a server that is down, hangs or is odd."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
from redis.asyncio import Redis as Client

from tests.services import Redis, redis
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import News
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.events import CircuitClosed, CircuitOpened, Cleared, Event, Locked
from troyproxy.store import redis_mirror
from troyproxy.store.redis_mirror import PER_MESSAGE, STATE, RedisMirror

pytestmark = pytest.mark.anyio
NOW = time.time()
PATIENCE_S = 10.0
KEEP_S = 600.0
CLOSED = CircuitClosed(NOW, "alpha", "m1")


def locked(until: float = NOW + 60, model: str = "m1") -> Locked:
    return Locked(NOW - 1, "alpha", "A", model, until, soft=False, error_class=ErrorClass.RATE)


OPENED = CircuitOpened(NOW - 1, "alpha", "m1", NOW + 30, 30.0)
CLEARED = Cleared(NOW, "alpha")


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
async def pair(running: Redis, client: Client) -> AsyncIterator[tuple[RedisMirror, RedisMirror]]:
    one, other = (RedisMirror(running.url, keep_s=KEEP_S) for _ in range(2))
    async with AsyncExitStack() as stack:
        for mirror in (one, other):
            stack.push_async_callback(mirror.close)
            await mirror.open()
        yield one, other


async def next_news(mirror: RedisMirror) -> News:
    async with asyncio.timeout(PATIENCE_S):
        return await mirror.listen()


async def read(mirror: RedisMirror) -> set[Event]:
    return set(await mirror.read(NOW))


async def test_what_one_pushes_the_other_reads(pair: tuple[RedisMirror, RedisMirror]) -> None:
    one, other = pair
    await one.push([locked(), OPENED, CLEARED], now=NOW)
    assert await read(other) == {locked(), OPENED, CLEARED}


async def test_what_one_pushes_the_other_hears_with_the_news(pair: tuple[RedisMirror, RedisMirror]) -> None:
    one, other = pair
    await one.push([locked()], now=NOW, news=News((CLOSED,), 7))
    assert await next_news(other) == News((), 7)
    assert await next_news(other) == News((locked(), CLOSED))


async def test_nobody_hears_himself(pair: tuple[RedisMirror, RedisMirror]) -> None:
    one, other = pair
    await one.push([locked()], now=NOW)
    await other.push([OPENED], now=NOW)
    assert await next_news(one) == News((OPENED,))


async def test_what_was_heard_is_not_said_again(pair: tuple[RedisMirror, RedisMirror]) -> None:
    one, other = pair
    await one.push([locked()], now=NOW)
    assert await next_news(other) == News((locked(),))
    await other.push([locked()], now=NOW)
    await other.push([locked(), OPENED], now=NOW)
    assert await next_news(one) == News((OPENED,))


async def test_what_two_know_is_kept_once(pair: tuple[RedisMirror, RedisMirror], client: Client) -> None:
    for mirror in pair:
        await mirror.push([locked()], now=NOW)
    assert await client.zcard(STATE) == 1


async def test_what_is_no_longer_kept_is_taken_away(pair: tuple[RedisMirror, RedisMirror]) -> None:
    one, other = pair
    await one.push([locked(), OPENED], now=NOW)
    await one.push([OPENED], now=NOW)
    assert await read(other) == {OPENED}


async def test_what_another_keeps_is_not_taken_away(pair: tuple[RedisMirror, RedisMirror]) -> None:
    one, other = pair
    await one.push([locked()], now=NOW)
    await other.push([OPENED], now=NOW)
    await other.push([], now=NOW)
    assert await read(other) == {locked()}


async def test_what_is_missing_is_written_again_after_a_read(
    pair: tuple[RedisMirror, RedisMirror], client: Client
) -> None:
    one, other = pair
    await one.push([locked()], now=NOW)
    await client.flushall()
    assert await read(one) == set()
    await one.push([locked()], now=NOW)
    assert await read(other) == {locked()}


async def test_what_has_run_out_is_not_read_and_soon_gone(
    pair: tuple[RedisMirror, RedisMirror], client: Client
) -> None:
    one, other = pair
    await one.push([locked(NOW + 5)], now=NOW)
    assert list(await other.read(NOW + 5)) == []
    await one.push([OPENED], now=NOW + 6)
    assert await client.zcard(STATE) == 1


async def test_the_keys_end_by_themselves(pair: tuple[RedisMirror, RedisMirror], client: Client) -> None:
    await pair[0].push([locked()], now=NOW)
    assert {key: 0 < await client.ttl(key) <= KEEP_S for key in await client.keys()} == {STATE.encode(): True}


async def test_the_records_are_bounded_and_those_that_end_first_go(
    pair: tuple[RedisMirror, RedisMirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_mirror, "BOUND", 2)
    await pair[0].push([locked(NOW + 60 + n, f"m{n}") for n in range(4)], now=NOW)
    assert {event.model for event in await read(pair[1])} == {"m2", "m3"}


async def test_a_storm_becomes_messages_of_a_bounded_size(pair: tuple[RedisMirror, RedisMirror]) -> None:
    one, other = pair
    await one.push([locked(model=f"m{n}") for n in range(PER_MESSAGE + 1)], now=NOW)
    assert [len((await next_news(other)).events) for _ in range(2)] == [PER_MESSAGE, 1]


async def test_what_another_version_wrote_is_ignored(pair: tuple[RedisMirror, RedisMirror], client: Client) -> None:
    one, other = pair
    await client.zadd(STATE, {b'{"v": 2, "type": "locked"}': NOW + 60, b"\xff": NOW + 60})
    await client.publish("troyproxy:v1:news:0", b'{"v": 2}')
    await one.push([locked()], now=NOW)
    assert await read(other) == {locked()}
    assert await next_news(other) == News((locked(),))


async def test_databases_of_one_server_do_not_hear_each_other(
    pair: tuple[RedisMirror, RedisMirror], running: Redis
) -> None:
    elsewhere = RedisMirror(running.url.removesuffix("/0") + "/1", keep_s=KEEP_S)
    await elsewhere.open()
    try:
        await elsewhere.push([OPENED], now=NOW)
        await pair[0].push([locked()], now=NOW)
        assert await next_news(pair[1]) == News((locked(),))
    finally:
        await elsewhere.close()


async def test_nothing_works_before_it_was_opened(running: Redis) -> None:
    mirror = RedisMirror(running.url, keep_s=KEEP_S)
    for call in (mirror.read(NOW), mirror.push([], now=NOW), mirror.listen()):
        with pytest.raises(StoreUnavailable):
            await call
    assert await mirror.close() is None  # type: ignore[func-returns-value]  # it must not raise


async def test_a_wrong_password_is_an_outage_and_is_not_quoted(running: Redis) -> None:
    mirror = RedisMirror(running.url.replace("hush-hush", "wrong-one"), keep_s=KEEP_S)
    with pytest.raises(StoreUnavailable) as refused:
        await mirror.open()
    assert "wrong-one" not in str(refused.value)
    await mirror.close()


async def test_a_value_of_another_kind_under_our_name_is_an_outage(
    pair: tuple[RedisMirror, RedisMirror], client: Client
) -> None:
    await client.set(STATE, "not ours")
    with pytest.raises(StoreUnavailable):
        await pair[0].read(NOW)
    with pytest.raises(StoreUnavailable):
        await pair[0].push([locked()], now=NOW)


@pytest.fixture
def server() -> Iterator[Redis]:
    with redis() as own:
        yield own


async def test_a_server_that_went_away_is_an_outage_until_it_is_opened_again(server: Redis) -> None:
    mirror = RedisMirror(server.url, keep_s=KEEP_S)
    await mirror.open()
    await mirror.push([locked()], now=NOW)
    waiting = asyncio.get_running_loop().create_task(mirror.listen())
    server.stop()
    with pytest.raises(StoreUnavailable):
        async with asyncio.timeout(PATIENCE_S):
            await waiting
    for call in (mirror.read(NOW), mirror.push([OPENED], now=NOW), mirror.open()):
        with pytest.raises(StoreUnavailable):
            await call
    server.start()
    await mirror.open()
    assert await read(mirror) == set()
    await mirror.push([locked()], now=NOW)
    assert await read(mirror) == {locked()}
    await mirror.close()


async def test_a_server_that_hangs_is_an_outage_within_bounds(server: Redis) -> None:
    mirror, late = (RedisMirror(server.url, keep_s=KEEP_S) for _ in range(2))
    await mirror.open()
    server.freeze()
    try:
        async with asyncio.timeout(PATIENCE_S):
            for call in (mirror.read(NOW), mirror.push([locked()], now=NOW), late.open()):
                with pytest.raises(StoreUnavailable):
                    await call
    finally:
        server.thaw()
    await mirror.open()
    await mirror.push([locked()], now=NOW)
    assert await read(mirror) == {locked()}
    for each in (mirror, late):
        await each.close()


async def test_cancelling_a_call_leaves_a_mirror_that_works(pair: tuple[RedisMirror, RedisMirror]) -> None:
    one, other = pair
    await one.push([locked()], now=NOW)
    for _ in range(20):
        task = asyncio.get_running_loop().create_task(read(other))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await read(other) == {locked()}
