"""How the pooled transport connects: several addresses, TLS as it must be, an end of TLS that is none."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.upstream.loopback import FAST, PATIENCE_S, Connection, Handler, Log, Rig, read, server
from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled import opening
from troyproxy.upstream.pooled.adapter import PooledUpstream
from troyproxy.upstream.pooled.opening import Trust

pytestmark = pytest.mark.anyio
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Certificate = tuple[Path, ssl.SSLContext]


@asynccontextmanager
async def over_tls(
    certificate: Certificate, handler: Callable[[Connection], Awaitable[None]], host: str = "127.0.0.1"
) -> AsyncIterator[Rig]:
    upstream = PooledUpstream()
    async with server(handler, tls=certificate[1]) as (port, log):
        provider = Provider(id="alpha", base_url=f"https://{host}:{port}/v1", ca_file=str(certificate[0]))
        try:
            yield Rig(upstream, provider, log)
        finally:
            await upstream.aclose()


async def failure(rig: Rig) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as caught:
        await read(await rig.upstream.send(rig.request()))
    return caught.value


async def serve(conn: Connection) -> None:
    while True:
        await conn.request()
        await conn.write(ANSWER)


async def test_a_kept_tls_connection_is_used_again(certificate: Certificate) -> None:
    async with over_tls(certificate, serve) as rig:
        assert [await read(await rig.upstream.send(rig.request())) for _ in range(3)] == [b"ok"] * 3
        assert rig.log.connections == 1


async def test_a_certificate_of_another_host_is_a_tls_fault(certificate: Certificate) -> None:
    async with over_tls(certificate, serve, host="localhost") as rig:
        failed = await failure(rig)
        assert (failed.fault, failed.body_sent, rig.log.requests) == (Fault.TLS, False, [])
        assert "localhost" not in str(failed)


async def test_http_1_1_is_what_is_offered(certificate: Certificate) -> None:
    async def handle(conn: Connection) -> None:
        await conn.request()
        chosen.append(conn.writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await conn.write(ANSWER)

    chosen: list[str | None] = []
    certificate[1].set_alpn_protocols(["h2", "http/1.1"])
    async with over_tls(certificate, handle) as rig:
        await read(await rig.upstream.send(rig.request()))
    assert chosen == ["http/1.1"]


@contextmanager
def closing(context: ssl.SSLContext, answer: bytes, *, farewell: bool) -> Iterator[int]:
    """A server in a thread of its own that answers once and closes, with TLS's farewell or without."""

    def run() -> None:
        peer, _ = listener.accept()
        with peer, context.wrap_socket(peer, server_side=True) as line:
            line.recv(1 << 16)
            line.sendall(answer)
            if farewell:
                with suppress(OSError):
                    line.unwrap()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(
    ("answer", "farewell", "whole"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nok", True, True),
        (b"HTTP/1.1 200 OK\r\n\r\nok", False, False),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok", False, True),
    ],
)
async def test_a_body_that_ends_with_tls_needs_its_farewell(
    certificate: Certificate, answer: bytes, farewell: bool, whole: bool
) -> None:
    """Without ``close_notify`` anybody on the way may have cut it (RFC 9112, section 9.8)."""
    with closing(certificate[1], answer, farewell=farewell) as port:
        upstream = PooledUpstream()
        provider = Provider(id="alpha", base_url=f"https://127.0.0.1:{port}", ca_file=str(certificate[0]))
        rig = Rig(upstream, provider, Log())
        if whole:
            assert await read(await upstream.send(rig.request())) == b"ok"
        else:
            assert (await failure(rig)).fault is Fault.RESET
        await upstream.aclose()


async def test_a_large_exchange_over_tls_is_whole(certificate: Certificate) -> None:
    body = bytes(range(256)) * 8000

    async def handle(conn: Connection) -> None:
        seen = await conn.request()
        await conn.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
        await conn.write(seen.body)
        await conn.left()

    async with over_tls(certificate, handle) as rig:
        assert await read(await rig.upstream.send(rig.request(body=body))) == body


async def test_a_peer_that_leaves_the_handshake_is_a_connect_fault(certificate: Certificate) -> None:
    async def leave(conn: Connection) -> None:
        await conn.reader.read(1)

    async with server(leave) as (port, log):
        upstream = PooledUpstream()
        provider = Provider(id="alpha", base_url=f"https://127.0.0.1:{port}", ca_file=str(certificate[0]))
        failed = await failure(Rig(upstream, provider, log))
        await upstream.aclose()
    assert (failed.fault, failed.body_sent) == (Fault.CONNECT, False)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # uvloop asks for the address again
async def test_an_address_that_refuses_does_not_hide_one_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FAST.over(serve) as rig:
        port = int(rig.provider.base_url.rpartition(":")[2].partition("/")[0])

        async def both(*_: object, **__: object) -> list[tuple[object, ...]]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", at)) for at in (1, port)]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both, raising=False)
        assert await read(await rig.upstream.send(rig.request())) == b"ok"


async def test_a_name_that_is_none_is_a_connect_fault() -> None:
    upstream = PooledUpstream()
    failed = await failure(Rig(upstream, Provider(id="p", base_url="http://" + "a" * 64 + ".example"), Log()))
    assert (failed.fault, failed.body_sent) == (Fault.CONNECT, False)
    await upstream.aclose()


async def test_a_detail_is_a_class_and_a_system_error() -> None:
    async with server(serve) as (port, log):
        rig = Rig(PooledUpstream(), Provider(id="p", base_url=f"http://127.0.0.1:{port}"), log)
    assert str(await failure(rig)) == "ConnectionRefusedError: Connection refused"


def hanging(reached: asyncio.Event) -> Handler:
    """Return a server that reads a first byte, and says nothing."""

    async def hang(conn: Connection) -> None:
        await conn.reader.read(1)
        reached.set()
        await conn.left()

    return hang


async def test_a_cancelled_handshake_leaves_nothing(certificate: Certificate) -> None:
    reached = asyncio.Event()
    async with server(hanging(reached)) as (port, log):
        upstream = PooledUpstream(max_connections=1)
        provider = Provider(id="alpha", base_url=f"https://127.0.0.1:{port}", ca_file=str(certificate[0]))
        rig = Rig(upstream, provider, log)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(upstream.send(rig.request()))
            await asyncio.wait_for(reached.wait(), PATIENCE_S)
            sending.cancel()
        assert await asyncio.wait_for(log.gone.wait(), PATIENCE_S)
        assert upstream._routes["alpha"].pool.used == 0


async def test_closing_the_adapter_ends_what_still_connects(certificate: Certificate) -> None:
    reached = asyncio.Event()
    async with server(hanging(reached)) as (port, log):
        upstream = PooledUpstream()
        provider = Provider(id="alpha", base_url=f"https://127.0.0.1:{port}", ca_file=str(certificate[0]))
        async with asyncio.TaskGroup() as group:
            failing = group.create_task(failure(Rig(upstream, provider, log)))
            await asyncio.wait_for(reached.wait(), PATIENCE_S)
            await upstream.aclose()
        assert (failing.result().fault, failing.result().body_sent) == (Fault.RESET, False)


def test_the_roots_are_loaded_once_and_only_for_tls() -> None:
    trust = Trust()
    assert (trust.context("http", None), trust._usual) == (None, None)
    assert trust.context("https", None) is trust.context("https", None)


def test_the_system_is_verified_with_names() -> None:
    context = Trust().context("https", None)
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


async def test_a_provider_may_change_whom_it_trusts(certificate: Certificate) -> None:
    async with over_tls(certificate, serve) as rig:
        await read(await rig.upstream.send(rig.request()))
        moved = Rig(rig.upstream, replace(rig.provider, ca_file=None), rig.log)
        assert (await failure(moved)).fault is Fault.TLS


def test_one_address_is_tried_alone_for_a_quarter_second() -> None:
    assert opening.NEXT_ADDRESS_S == 0.25
