"""A request whose kept connection ends in silence is sent once more, on a new connection; no other is."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from msgspec import structs

from tests.upstream.kept import ANSWER, Script, kept_then, serve, warmed
from tests.upstream.loopback import PATIENCE_S, Connection, Log, Network, Rig, read
from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.terms import KEEPALIVE_S

pytestmark = pytest.mark.anyio
RESETS = b"\1\0\0\0\0\0\0\0"
"""SO_LINGER with no time: closing sends a reset."""


def resetting(conn: Connection) -> None:
    conn.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)


async def close(conn: Connection) -> None:
    await conn.request()


async def reset(conn: Connection) -> None:
    await conn.request()
    resetting(conn)


async def mute(conn: Connection) -> None:
    await conn.request()
    await conn.left()


async def partial_head(conn: Connection) -> None:
    await conn.request()
    await conn.write(b"HTTP/1.1 200 O")
    resetting(conn)


async def informational(conn: Connection) -> None:
    await conn.request()
    await conn.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")


async def failure(rig: Rig, request: UpstreamRequest | None = None) -> tuple[Fault, bool]:
    with pytest.raises(UpstreamFailed) as caught:
        await rig.upstream.send(request or rig.request())
    return caught.value.fault, caught.value.body_sent


@pytest.fixture
def closing_server() -> Iterator[tuple[int, list[bytes]]]:
    """A server in a thread of its own that closes after each answer without saying so, and what it was asked."""
    seen: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                asked = b""
                while not asked.endswith(b"{}") and (chunk := peer.recv(1 << 16)):
                    asked += chunk
                if asked:
                    seen.append(asked)
                    peer.sendall(ANSWER)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield listener.getsockname()[1], seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE_S)


async def test_a_server_that_closes_after_each_answer_serves_40_of_40(
    net: Network, closing_server: tuple[int, list[bytes]]
) -> None:
    port, seen = closing_server
    upstream = net.make()
    request = UpstreamRequest(Provider(id="p", base_url=f"http://127.0.0.1:{port}"), "POST", "/x", (), b"{}")
    try:
        bodies = [await read(await upstream.send(request)) for _ in range(40)]
    finally:
        await upstream.aclose()
    assert (bodies, len(seen)) == ([b"ok"] * 40, 40)


async def test_a_server_in_this_loop_that_closes_after_each_answer_serves_40_of_40(net: Network) -> None:
    async def handle(conn: Connection) -> None:
        await conn.request()
        await conn.write(ANSWER)

    async with net.over(handle) as rig:
        bodies = [await read(await rig.upstream.send(rig.request())) for _ in range(40)]
        assert (bodies, len(rig.log.requests)) == ([b"ok"] * 40, 40)


@pytest.mark.parametrize("end", [close, reset])
async def test_a_kept_connection_that_ends_in_silence_is_not_noticed(net: Network, end: Script) -> None:
    async with net.over(kept_then(end, serve)) as rig:
        assert await read(await (await warmed(rig)).upstream.send(rig.request(body=b"again"))) == b"ok"
        assert [seen.body for seen in rig.log.requests] == [b"{}", b"again", b"again"]


@pytest.mark.parametrize("end", [close, reset])
async def test_a_second_silence_is_reported_and_not_tried_a_third_time(net: Network, end: Script) -> None:
    async with net.over(kept_then(end, end)) as rig:
        assert await failure(await warmed(rig)) == (Fault.RESET, True)
        assert (len(rig.log.requests), rig.log.connections) == (3, 2)


async def test_the_second_try_passes_over_idle_connections(net: Network) -> None:
    together = asyncio.Barrier(3)

    async def handle(conn: Connection) -> None:
        number = conn.log.connections
        await conn.request()
        if number <= 3:
            await together.wait()
            await conn.write(ANSWER)
            await conn.request()
            return
        await conn.write(ANSWER)

    async with net.over(handle) as rig:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(warmed(rig))
        assert await read(await rig.upstream.send(rig.request())) == b"ok"
        assert (len(rig.log.requests), rig.log.connections) == (5, 4)


@pytest.mark.parametrize("end", [close, reset])
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_new_connection_that_ends_is_not_tried_again(net: Network, method: str, end: Script) -> None:
    async with net.over(end) as rig:
        assert await failure(rig, structs.replace(rig.request(), method=method)) == (Fault.RESET, True)
        assert (len(rig.log.requests), rig.log.connections) == (1, 1)


@pytest.mark.parametrize("end", [partial_head, informational])
async def test_nothing_is_tried_again_once_a_byte_came_back(net: Network, end: Script) -> None:
    async with net.over(kept_then(end, serve)) as rig:
        assert await failure(await warmed(rig)) == (Fault.RESET, True)
        assert (len(rig.log.requests), rig.log.connections) == (2, 1)


async def test_bad_http_on_a_kept_connection_is_not_tried_again(net: Network) -> None:
    async def babble(conn: Connection) -> None:
        await conn.request()
        await conn.write(b"SSH-2.0-OpenSSH\r\n\r\n")

    async with net.over(kept_then(babble, serve)) as rig:
        assert await failure(await warmed(rig)) == (Fault.PROTOCOL, True)
        assert rig.log.connections == 1


async def test_nothing_is_tried_again_when_the_time_to_connect_is_over(net: Network) -> None:
    """A close that late is no idle close: the upstream was at work."""
    async with net.over(kept_then(close, serve)) as rig:
        request = structs.replace((await warmed(rig)).request(), connect_s=1e-9)
        assert await failure(rig, request) == (Fault.RESET, True)
        assert rig.log.connections == 1


async def test_a_large_body_is_sent_again_whole(net: Network) -> None:
    async def cut_short(conn: Connection) -> None:
        await conn.reader.readuntil(b"\r\n\r\n")
        resetting(conn)

    body = bytes(range(256)) * (1 << 12)
    async with net.over(kept_then(cut_short, serve)) as rig:
        assert await read(await (await warmed(rig)).upstream.send(rig.request(body=body))) == b"ok"
        assert [seen.body for seen in rig.log.requests] == [b"{}", body]


async def test_a_cancelled_second_try_gives_its_slot_back(net: Network) -> None:
    async with net.over(kept_then(close, mute, serve), max_connections=1) as rig:
        await warmed(rig)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(rig.upstream.send(rig.request()))
            while len(rig.log.requests) < 3:
                rig.log.arrived.clear()
                await asyncio.wait_for(rig.log.arrived.wait(), PATIENCE_S)
            sending.cancel()
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)
        assert await read(await rig.upstream.send(rig.request())) == b"ok"


async def test_a_cancelled_first_try_is_not_tried_again(net: Network) -> None:
    async with net.over(kept_then(mute, serve), max_connections=1) as rig:
        await warmed(rig)
        rig.log.arrived.clear()
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(rig.upstream.send(rig.request()))
            await rig.log.arrived.wait()
            sending.cancel()
        assert await asyncio.wait_for(rig.log.gone.wait(), PATIENCE_S)
        assert (sending.cancelled(), rig.log.connections) == (True, 1)


async def test_closing_the_adapter_ends_a_request_on_a_kept_connection(net: Network) -> None:
    async with net.over(kept_then(mute, serve)) as rig:
        await warmed(rig)
        rig.log.arrived.clear()
        async with asyncio.TaskGroup() as group:
            failing = group.create_task(failure(rig))
            await rig.log.arrived.wait()
            await rig.upstream.aclose()
        assert (failing.result(), rig.log.connections) == ((Fault.RESET, True), 1)


async def test_a_server_that_went_away_is_a_connect_fault_of_a_request_that_was_sent(net: Network) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(ANSWER)
        await reader.readuntil(b"{}")
        listener.close()
        writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    provider = Provider(id="p", base_url=f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    rig = Rig(net.make(), provider, Log())
    assert await failure(await warmed(rig)) == (Fault.CONNECT, True)
    await rig.upstream.aclose()


def test_an_idle_connection_is_given_up_before_common_servers_do() -> None:
    assert KEEPALIVE_S < 5
