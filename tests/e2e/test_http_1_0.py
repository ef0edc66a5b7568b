"""Clients of HTTP/1.0, which know neither chunks nor interim answers: nginx without ``proxy_http_version`` is one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.client import Open
from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.nginx import nginx, post
from tests.e2e.shapes import DONE, completion, delta, dumps
from tests.e2e.upstreams import Gate, Upstreams, stream, whole

STREAM = delta("one"), delta("two", finish="stop"), DONE


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(folder, config) as running:
        yield running


@pytest.fixture(scope="module")
def old_nginx(tmp_path_factory: pytest.TempPathFactory, gateway: Gateway) -> Iterator[int]:
    """The port of an nginx that speaks HTTP/1.0 to the gateway, as it does unless it is told."""

    def edited(shipped: str) -> str:
        old = shipped.replace("proxy_http_version 1.1;", "proxy_http_version 1.0;")
        assert old != shipped
        return old

    with nginx(tmp_path_factory.mktemp("nginx"), gateway, edited) as port:
        yield port


def asked(gateway: Gateway, payload: dict[str, object]) -> tuple[bytes, bytes]:
    """Ask as a client of HTTP/1.0 and read to the end of the connection; return head and body."""
    body = dumps(payload)
    lines = [f"POST {CHAT} HTTP/1.0", *(f"{name}: {value}" for name, value in client_headers())]
    head = "\r\n".join([*lines, f"content-length: {len(body)}", "connection: keep-alive", "", ""])
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as client:
        client.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    found, _, rest = answer.partition(b"\r\n\r\n")
    return found.lower(), rest


def test_a_stream_ends_with_its_connection(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(*STREAM), model="flow")
    head, body = asked(gateway, chat("alpha/flow", stream=True))
    assert (b"transfer-encoding" in head, b"connection: close" in head, body) == (False, True, b"".join(STREAM))


def test_a_whole_answer_has_its_length(gateway: Gateway, upstreams: Upstreams) -> None:
    said = completion("y" * 100_000)
    upstreams.script("alpha", whole(said), model="json")
    head, body = asked(gateway, chat("alpha/json"))
    assert (b"transfer-encoding" in head, b"content-length: %d" % len(said) in head, body) == (False, True, said)


def test_a_stream_through_an_nginx_that_speaks_it_is_whole_and_prompt(old_nginx: int, upstreams: Upstreams) -> None:
    first, second, done = STREAM
    upstreams.script("alpha", stream(first, Gate("rest"), second, done), model="old")
    with closing(Open(post(old_nginx, chat("alpha/old", stream=True)))) as answer:
        got = b""
        while len(got) < len(first):
            got += answer.read()
        upstreams.open("rest")
        assert (got, answer.rest()) == (first, second + done)


def test_a_large_answer_through_an_nginx_that_speaks_it_is_whole(old_nginx: int, upstreams: Upstreams) -> None:
    said = completion("y" * 3_000_000)
    upstreams.script("alpha", whole(said), model="large")
    with closing(Open(post(old_nginx, chat("alpha/large")))) as answer:
        assert answer.rest() == said
