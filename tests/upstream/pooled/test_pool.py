"""Slots and kept connections: first come first served, and nothing is lost to a cancellation or a death."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from msgspec import structs

from tests.upstream.loopback import FAST, PATIENCE_S, Connection, Rig, read
from tests.upstream.pooled.rigs import eventually
from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled.adapter import PooledUpstream
from troyproxy.upstream.pooled.connection import Connection as Kept
from troyproxy.upstream.pooled.pool import Pool

pytestmark = pytest.mark.anyio
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def serve(conn: Connection) -> None:
    """Answer; ``/hang`` is begun and never ended, ``/drop`` is answered and the connection closed."""
    while True:
        seen = await conn.request()
        if seen.target.endswith("/hang"):
            await conn.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no")
            await conn.left()
            return
        await conn.write(ANSWER)
        if seen.target.endswith("/drop"):
            return


@asynccontextmanager
async def full() -> AsyncIterator[tuple[Rig, Pool, asyncio.TaskGroup]]:
    """One slot, and its connection busy until somebody closes `busy` of the pool's own making."""
    async with FAST.over(serve, max_connections=1) as rig, asyncio.TaskGroup() as group:
        yield rig, await _held(rig), group


async def _held(rig: Rig) -> Pool:
    await read(await rig.upstream.send(rig.request()))
    assert isinstance(rig.upstream, PooledUpstream)
    return rig.upstream._routes["alpha"].pool


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def wanted(pool: Pool, group: asyncio.TaskGroup) -> tuple[Kept, asyncio.Task[Kept]]:
    """Take the one connection there is, and let somebody wait for it."""
    connection = pool.kept()
    assert connection is not None
    waiting = group.create_task(pool.connected(pool.loop.time() + PATIENCE_S))
    await settled()
    return connection, waiting


async def test_who_waits_is_served_in_order() -> None:
    async with full() as (rig, pool, group):
        busy = await rig.upstream.send(rig.request("/hang"))
        waiting = [group.create_task(rig.upstream.send(rig.request(f"/{number}"))) for number in range(3)]
        await settled()
        await busy.aclose()
        assert [await read(await task) for task in waiting] == [b"ok"] * 3
        assert [seen.target for seen in rig.log.requests[2:]] == ["/v1/0", "/v1/1", "/v1/2"]
        assert pool.used == 1


async def test_a_freed_connection_goes_to_the_first_in_line() -> None:
    async with full() as (rig, pool, group):
        connection, waiting = await wanted(pool, group)
        pool.free(connection)
        assert (await waiting is connection, rig.log.connections) == (True, 1)
        pool.free(connection)


async def test_a_cancelled_wait_gives_back_what_it_just_got() -> None:
    async with full() as (_, pool, group):
        connection, waiting = await wanted(pool, group)
        pool.free(connection)
        waiting.cancel()
        await settled()
        assert (waiting.cancelled(), pool.kept() is connection) == (True, True)
        pool.free(connection)


async def test_a_cancelled_wait_holds_nothing() -> None:
    async with full() as (_, pool, group):
        connection, waiting = await wanted(pool, group)
        waiting.cancel()
        await settled()
        pool.free(connection)
        assert (pool.kept() is connection, pool.used) == (True, 1)
        pool.free(connection)


async def test_a_connection_that_dies_on_its_way_to_one_who_waits_is_replaced() -> None:
    async with full() as (rig, pool, group):
        connection, waiting = await wanted(pool, group)
        pool.free(connection)
        connection.abort()
        fresh = await waiting
        assert (fresh is connection, pool.used, rig.log.connections) == (False, 1, 2)
        pool.free(fresh)


async def test_no_slot_in_time_is_saturation() -> None:
    async with full() as (rig, pool, _group):
        busy = await rig.upstream.send(rig.request("/hang"))
        with pytest.raises(UpstreamFailed) as caught:
            await rig.upstream.send(structs.replace(rig.request(), connect_s=0.01))
        assert (caught.value.fault, caught.value.body_sent, len(pool._line)) == (Fault.SATURATED, False, 0)
        await busy.aclose()
        assert await read(await rig.upstream.send(rig.request())) == b"ok"


async def test_a_second_try_makes_room_for_its_new_connection() -> None:
    async with full() as (rig, pool, _group):
        fresh = await pool.fresh(pool.loop.time() + PATIENCE_S)
        assert (pool.used, pool.kept(), rig.log.connections) == (1, None, 2)
        pool.free(fresh)


async def test_a_second_try_that_waits_takes_no_old_connection() -> None:
    async with full() as (rig, pool, group):
        connection = pool.kept()
        assert connection is not None
        waiting = group.create_task(pool.fresh(pool.loop.time() + PATIENCE_S))
        await settled()
        pool.free(connection)
        fresh = await waiting
        assert (fresh is connection, connection.open, pool.used, rig.log.connections) == (False, False, 1, 2)
        pool.free(fresh)


async def test_closing_fails_who_waits() -> None:
    async with full() as (rig, pool, group):
        held = pool.kept()
        waiting = group.create_task(asyncio.wait_for(_fault(pool), PATIENCE_S))
        await settled()
        await rig.upstream.aclose()
        assert (await waiting, held is not None and held.open, pool.used) == (Fault.RESET, False, 0)


async def _fault(pool: Pool) -> Fault:
    with pytest.raises(UpstreamFailed) as caught:
        await pool.connected(pool.loop.time() + PATIENCE_S)
    return caught.value.fault


async def test_a_closed_pool_gives_nothing() -> None:
    async with full() as (rig, pool, _group):
        await rig.upstream.aclose()
        assert await _fault(pool) is Fault.RESET


async def test_a_closed_adapter_begins_anew() -> None:
    async with full() as (rig, _, _group):
        await rig.upstream.aclose()
        assert await read(await rig.upstream.send(rig.request())) == b"ok"


async def test_a_retired_pool_ends_with_its_last_exchange() -> None:
    async with full() as (rig, pool, _group), FAST.over(serve) as other:
        busy = await rig.upstream.send(rig.request("/hang"))
        moved = replace(rig.provider, base_url=other.provider.base_url)
        await read(await rig.upstream.send(structs.replace(rig.request(), provider=moved)))
        before = pool.used
        await busy.aclose()
        assert (before, pool.used, pool.kept()) == (1, 0, None)


async def test_another_path_of_an_origin_keeps_the_pool() -> None:
    async with full() as (rig, _, _group):
        moved = replace(rig.provider, base_url=rig.provider.base_url.replace("/v1", "/v2"))
        await read(await rig.upstream.send(structs.replace(rig.request(), provider=moved)))
        assert (rig.log.connections, rig.log.requests[-1].target) == (1, "/v2/chat/completions")


async def test_a_peer_that_closes_at_once_leaves_no_slot_taken() -> None:
    async def slam(conn: Connection) -> None:
        conn.writer.transport.abort()

    async with FAST.over(slam, max_connections=1) as rig:
        for _ in range(5):
            with pytest.raises(UpstreamFailed) as caught:
                await rig.upstream.send(rig.request())
            assert caught.value.fault is Fault.RESET
        assert isinstance(rig.upstream, PooledUpstream)
        assert rig.upstream._routes["alpha"].pool.used == 0


async def test_a_storm_of_cancellations_leaves_the_pool_whole() -> None:
    async with FAST.over(serve, max_connections=4) as rig:

        async def ask(number: int) -> None:
            response = await rig.upstream.send(rig.request("/hang" if number % 3 == 0 else f"/{number}"))
            await anext(response.chunks())
            await response.aclose()

        loop = asyncio.get_running_loop()
        for turns in range(40):
            tasks = [loop.create_task(ask(number)) for number in range(12)]
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in tasks[turns % 5 :: 2]:
                task.cancel()
            await asyncio.wait(tasks, timeout=PATIENCE_S)
            assert all(task.cancelled() or task.exception() is None for task in tasks)
        bodies = [await read(await rig.upstream.send(rig.request())) for _ in range(8)]
        assert isinstance(rig.upstream, PooledUpstream)
        pool = rig.upstream._routes["alpha"].pool
        assert (bodies, pool.used, len(pool._idle), len(pool._line)) == ([b"ok"] * 8, len(pool._idle), pool.used, 0)


def test_another_event_loop_begins_anew() -> None:
    """A host without a lifespan may run each request in a loop of its own."""
    upstream = PooledUpstream()

    async def ask() -> bytes:
        async with FAST.over(serve) as rig:
            body = await read(await upstream.send(rig.request()))
            await upstream.aclose()
            return body

    async def leave() -> Pool:
        async with FAST.over(serve) as rig:
            await read(await upstream.send(rig.request("/drop")))
            pool = upstream._routes["alpha"].pool
            await eventually(lambda: pool.used == 0)
            return pool

    left = asyncio.run(leave())
    assert (asyncio.run(ask()), left.closed) == (b"ok", False)


async def test_a_retired_pool_keeps_nothing_that_a_cancelled_wait_gives_back() -> None:
    async with full() as (_, pool, group):
        connection, waiting = await wanted(pool, group)
        pool.retire()
        pool.free(connection)
        waiting.cancel()
        await settled()
        assert (connection.open, pool.used, pool.kept()) == (False, 0, None)
