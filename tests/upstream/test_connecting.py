"""What keeps the network adapter from connecting, and what it connects through: names, TLS, proxies."""

from __future__ import annotations

import socket
import ssl
from functools import partial
from pathlib import Path

import pytest

from tests.upstream.loopback import PATIENCE_S, Answer, Connection, Network, handler_of, read, server
from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.network import network

pytestmark = pytest.mark.anyio
ROUTED = Network(partial(network, "fast", env={}))
OK = Answer(headers=((b"content-length", b"2"),), steps=(b"ok",))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def fault_of(
    net: Network, provider: Provider, *, connect_s: float = PATIENCE_S, body: bytes = b"{}"
) -> UpstreamFailed:
    upstream = net.make()
    try:
        with pytest.raises(UpstreamFailed) as caught:
            await upstream.send(UpstreamRequest(provider, "POST", "/x", (), body, connect_s))
        return caught.value
    finally:
        await upstream.aclose()


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:{port}/v1",
        "http://no-such-host.invalid/v1",
        "http://" + "a" * 64 + ".example/v1",
        "http://127.0.0.1:99999999/v1",
        "ftp://127.0.0.1/v1",
        "",
    ],
)
async def test_what_cannot_be_reached_is_a_connect_fault_without_a_body(net: Network, base_url: str) -> None:
    failed = await fault_of(net, Provider(id="p", base_url=base_url.format(port=free_port())))
    assert (failed.fault, failed.body_sent) == (Fault.CONNECT, False)


async def test_a_detail_shows_no_url(net: Network) -> None:
    failed = await fault_of(
        net, Provider(id="p", base_url=f"http://127.0.0.1:{free_port()}/v1", query=(("key", "s3cret"),))
    )
    assert "s3cret" not in f"{failed}"
    assert "127.0.0.1" not in f"{failed}"


async def test_a_handshake_that_never_ends_is_a_connect_timeout(net: Network) -> None:
    async with server(Connection.left) as (port, _):
        failed = await fault_of(net, Provider(id="p", base_url=f"https://127.0.0.1:{port}"), connect_s=0.05)
    assert (failed.fault, failed.body_sent) == (Fault.TIMEOUT_CONNECT, False)


async def test_plain_http_behind_https_is_a_tls_fault(net: Network) -> None:
    async def handle(conn: Connection) -> None:
        await conn.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await conn.left()

    async with server(handle) as (port, _):
        failed = await fault_of(net, Provider(id="p", base_url=f"https://127.0.0.1:{port}"))
    assert (failed.fault, failed.body_sent) == (Fault.TLS, False)


@pytest.mark.parametrize("transport", ["fast", "httpx"])
async def test_the_environments_proxy_carries_the_request(transport: str) -> None:
    async with server(handler_of(OK)) as (port, log):
        upstream = network(transport, env={"HTTP_PROXY": f"http://127.0.0.1:{port}"})
        request = UpstreamRequest(Provider(id="p", base_url="http://api.example/v1"), "POST", "/x", (), b"{}")
        await read(await upstream.send(request))
        await upstream.aclose()
        assert log.requests[0].target == "http://api.example/v1/x"


@pytest.mark.parametrize("transport", ["fast", "httpx"])
async def test_the_proxy_variables_are_read_once(transport: str) -> None:
    """Looking them up in the process's environment for every request costs more than the rest of the lease."""
    async with server(handler_of(OK)) as (port, log):
        env = {"HTTP_PROXY": f"http://127.0.0.1:{port}"}
        upstream = network(transport, env=env)
        env.clear()
        request = UpstreamRequest(Provider(id="p", base_url="http://api.example/v1"), "POST", "/x", (), b"{}")
        await read(await upstream.send(request))
        await upstream.aclose()
        assert len(log.requests) == 1


@pytest.mark.parametrize("transport", ["fast", "httpx"])
async def test_a_providers_own_proxy_wins_and_gets_its_credential(transport: str) -> None:
    async with server(handler_of(OK)) as (port, log):
        upstream = network(transport, env={"HTTP_PROXY": f"http://127.0.0.1:{free_port()}"})
        provider = Provider(id="p", base_url="http://api.example/v1", proxy=f"http://u:p@127.0.0.1:{port}")
        await read(await upstream.send(UpstreamRequest(provider, "POST", "/x", (), b"{}")))
        await upstream.aclose()
        assert (b"proxy-authorization", b"Basic dTpw") in log.requests[0].headers


async def test_a_proxy_that_refuses_is_a_connect_fault() -> None:
    provider = Provider(id="p", base_url="http://api.example/v1", proxy=f"http://127.0.0.1:{free_port()}")
    assert (await fault_of(ROUTED, provider)).fault is Fault.CONNECT


async def test_a_proxy_that_will_not_tunnel_is_a_connect_fault() -> None:
    async with server(handler_of(Answer(status=407, headers=((b"content-length", b"0"),)))) as (port, _):
        provider = Provider(id="p", base_url="https://api.example/v1", proxy=f"http://127.0.0.1:{port}")
        assert (await fault_of(ROUTED, provider)).fault is Fault.CONNECT


async def test_an_unknown_certificate_is_a_tls_fault(net: Network, certificate: tuple[Path, ssl.SSLContext]) -> None:
    async with server(handler_of(OK), tls=certificate[1]) as (port, log):
        failed = await fault_of(net, Provider(id="p", base_url=f"https://127.0.0.1:{port}/v1"))
        assert (failed.fault, log.requests) == (Fault.TLS, [])


async def test_a_ca_file_is_trusted(net: Network, certificate: tuple[Path, ssl.SSLContext]) -> None:
    async with server(handler_of(OK), tls=certificate[1]) as (port, _):
        upstream = net.make()
        provider = Provider(id="p", base_url=f"https://127.0.0.1:{port}/v1", ca_file=str(certificate[0]))
        assert await read(await upstream.send(UpstreamRequest(provider, "POST", "/x", (), b"{}"))) == b"ok"
        await upstream.aclose()


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_ca_file_that_cannot_be_read_is_a_tls_fault(net: Network, tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    failed = await fault_of(net, Provider(id="p", base_url="https://127.0.0.1:1", ca_file=str(file)))
    assert failed.fault is Fault.TLS
