"""The network adapter beyond the contract: pools, faults of connecting, proxies, TLS."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import replace

import pytest
from msgspec import structs

from tests.upstream.loopback import PATIENCE_S, Answer, Connection, Network, handler_of, read, server
from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.http import outgoing

pytestmark = pytest.mark.anyio
OK = Answer(headers=((b"content-length", b"2"),), steps=(b"ok",))
RESETS = b"\1\0\0\0\0\0\0\0"
"""SO_LINGER with no time: closing sends a reset."""


async def test_a_reset_after_sending_says_that_the_body_was_sent(net: Network) -> None:
    async def handle(conn: Connection) -> None:
        await conn.request()
        conn.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)

    async with net.over(handle) as rig:
        with pytest.raises(UpstreamFailed) as caught:
            await rig.upstream.send(rig.request())
    assert (caught.value.fault, caught.value.body_sent) == (Fault.RESET, True)


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"])
async def test_bad_http_is_a_protocol_fault(net: Network, answer: bytes) -> None:
    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(answer)
        await conn.left()

    async with net.over(handle) as rig:
        with pytest.raises(UpstreamFailed) as caught:
            await rig.upstream.send(rig.request())
    assert (caught.value.fault, caught.value.body_sent) == (Fault.PROTOCOL, True)


async def test_200_abandoned_responses_leave_the_pool_whole(net: Network) -> None:
    """Field case SF-10: a failure status whose large body nobody reads, and streams that are left."""

    async def handle(conn: Connection) -> None:
        while True:
            seen = await conn.request()
            if seen.target.endswith("/ok"):
                await conn.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                continue
            await conn.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 1048576\r\n\r\n" + b"x" * 1000)
            await conn.left()

    async with net.over(handle, max_connections=4) as rig:
        for number in range(200):
            response = await rig.upstream.send(rig.request("/busy"))
            if number % 2:
                await anext(response.chunks())
            await response.aclose()
        bodies = [await read(await rig.upstream.send(rig.request("/ok"))) for _ in range(10)]
        assert (bodies, rig.log.most_open <= 4 + 1) == ([b"ok"] * 10, True)  # one may still be closing


async def test_cancelled_sends_leave_the_pool_whole(net: Network) -> None:
    async def handle(conn: Connection) -> None:
        if (await conn.request()).target.endswith("/ok"):
            await conn.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await conn.left()

    async with net.over(handle, max_connections=2) as rig:
        for _ in range(20):
            rig.log.arrived.clear()
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(rig.upstream.send(rig.request("/hang")))
                await rig.log.arrived.wait()
                sending.cancel()
        assert await read(await rig.upstream.send(rig.request("/ok"))) == b"ok"


async def test_a_full_pool_is_saturation_not_a_timeout_of_the_upstream(net: Network) -> None:
    async with net.over(Answer(steps=(b"x", None)), max_connections=1) as rig:
        holding = await rig.upstream.send(rig.request())
        with pytest.raises(UpstreamFailed) as caught:
            await rig.upstream.send(structs.replace(rig.request(), connect_s=0.05))
        await holding.aclose()
        assert (caught.value.fault, caught.value.body_sent) == (Fault.SATURATED, False)


async def test_a_waiting_request_gets_the_slot_that_is_freed(net: Network) -> None:
    async with net.over(Answer(steps=(b"x", None)), max_connections=1) as rig:
        holding = await rig.upstream.send(rig.request())
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(rig.upstream.send(rig.request()))
            await asyncio.sleep(0)
            await holding.aclose()
        assert waiting.result().status == 200
        await waiting.result().aclose()


async def test_a_connection_is_used_again_when_the_body_was_read(net: Network) -> None:
    async with net.over(OK) as rig:
        for _ in range(3):
            await read(await rig.upstream.send(rig.request()))
        assert (len(rig.log.requests), rig.log.connections) == (3, 1)


async def test_each_provider_has_its_own_pool(net: Network) -> None:
    async with net.over(Answer(steps=(b"x", None)), max_connections=1) as rig:
        one = await rig.upstream.send(rig.request())
        other = await rig.upstream.send(structs.replace(rig.request(), provider=replace(rig.provider, id="beta")))
        assert (one.status, other.status) == (200, 200)
        await one.aclose()
        await other.aclose()


async def test_a_changed_provider_gets_a_new_pool_and_the_old_one_closes_when_idle(net: Network) -> None:
    async with net.over(OK) as rig, server(handler_of(OK)) as (port, second):
        moved = replace(rig.provider, base_url=f"http://127.0.0.1:{port}/v1")
        busy = await rig.upstream.send(rig.request())
        await read(await rig.upstream.send(structs.replace(rig.request(), provider=moved)))
        assert await read(busy) == b"ok"
        await read(await rig.upstream.send(structs.replace(rig.request(), provider=moved)))
        assert (rig.log.connections, second.connections) == (1, 1)


async def test_an_idle_old_pool_closes_at_once(net: Network) -> None:
    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await conn.left()

    async with net.over(handle) as rig, server(handler_of(OK)) as (port, _):
        await read(await rig.upstream.send(rig.request()))
        moved = replace(rig.provider, base_url=f"http://127.0.0.1:{port}/v1")
        await read(await rig.upstream.send(structs.replace(rig.request(), provider=moved)))
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)


async def test_closing_the_adapter_ends_a_response_in_flight(net: Network) -> None:
    async with net.over(Answer(steps=(b"x", None))) as rig:
        response = await rig.upstream.send(rig.request())
        chunks = response.chunks()
        await anext(chunks)
        await rig.upstream.aclose()
        with pytest.raises(UpstreamFailed):
            await anext(chunks)
        await response.aclose()


async def test_a_request_is_not_logged_with_its_url(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with net.over(OK) as rig:
        await read(await rig.upstream.send(rig.request()))
    theirs = [r for r in caplog.records if r.name.split(".")[0] in {"aiohttp", "httpx", "httpcore"}]
    assert theirs == []


def test_a_user_agent_of_our_own_is_the_default() -> None:
    sent = outgoing(UpstreamRequest(Provider(id="p", base_url="http://p"), "POST", "/x", ()))
    assert sent.headers["user-agent"].startswith("troyproxy/")


def test_the_query_of_a_provider_is_added_to_that_of_the_base_url() -> None:
    provider = Provider(id="p", base_url="http://p/v1", query=(("api-version", "2 1"),))
    assert str(outgoing(UpstreamRequest(provider, "GET", "/x?a=1", ())).url) == "http://p/v1/x?a=1&api-version=2+1"


@pytest.mark.parametrize(("given", "expected"), [((), "Basic dTpwQA=="), (((b"authorization", b"mine"),), "mine")])
def test_user_and_password_of_a_base_url_are_basic_authentication(
    given: tuple[tuple[bytes, bytes], ...], expected: str
) -> None:
    sent = outgoing(UpstreamRequest(Provider(id="p", base_url="http://u:p%40@p/v1"), "GET", "/x", given))
    assert (sent.headers["authorization"], str(sent.url)) == (expected, "http://p/v1/x")
